"""From report data to text and pictures: terminal, Markdown, JUnit, generated pages, topology drawings."""
