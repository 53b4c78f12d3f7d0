"""The certificates as components verify them, and the modes of key files."""

import stat
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed.providers.local.certificates import Authority, signing_key, write_secret


def test_a_client_certificate_has_user_and_groups_and_is_signed_by_the_authority() -> None:
    authority = Authority("test")
    issued = x509.load_pem_x509_certificate(authority.issue("system:node:n", groups=("system:nodes",)).certificate)

    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pair.certificate))
    assert [a.value for a in issued.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:n"]
    assert [a.value for a in issued.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["system:nodes"]
    usage = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_server_certificate_names_hosts_and_addresses() -> None:
    issued = x509.load_pem_x509_certificate(
        Authority("test").issue("api", names=("kubernetes", "10.0.0.1")).certificate
    )
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["kubernetes"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


def test_the_signing_pair_is_the_public_and_private_key_of_one_pair() -> None:
    pair = signing_key()
    private = load_pem_private_key(pair.key, None)

    assert load_pem_public_key(pair.certificate) == private.public_key()


def test_only_their_owner_can_read_keys(tmp_path: Path) -> None:
    certificate, key = Authority("test").pair.write(tmp_path, "ca")

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert certificate.read_bytes().startswith(b"-----BEGIN CERTIFICATE")


def test_a_secret_replaces_a_file_that_all_could_read(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)

    write_secret(path, b"new")

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
