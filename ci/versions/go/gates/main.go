// Prints what Kubernetes of one minor knows: its feature gates, and the versions of resource.k8s.io. Run it inside the
// module of that minor; the output is ../../MINOR.gates.yaml:
//
//	cd ci/versions/go/kubernetes-1.37 && GOTOOLCHAIN=local go run -mod=readonly ../gates/main.go > ../../1.37.gates.yaml
package main

import (
	"fmt"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logs "k8s.io/component-base/logs/api/v1"
	metrics "k8s.io/component-base/metrics/features"
	manager "k8s.io/controller-manager/pkg/features"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/features"
)

// dependencies is what the gates of 1.35 and later can tell; earlier ones depend on nothing.
type dependencies interface {
	Dependencies() map[featuregate.Feature][]featuregate.Feature
}

func main() {
	gates := utilfeature.DefaultMutableFeatureGate
	must(logs.AddFeatureGates(gates))
	must(metrics.AddFeatureGates(gates))
	common := gates.GetAll()
	must(manager.SetupCurrentKubernetesSpecificFeatureGates(gates))

	fmt.Println("# Written by ci/versions/go/gates/main.go; never edited by hand.")
	printVersions()
	fmt.Println("# Gates that the scheduler does not know, so that it must not be given them.")
	all := gates.GetAll()
	unknown := []string{}
	for _, name := range sorted(all) {
		if _, known := common[name]; !known {
			unknown = append(unknown, string(name))
		}
	}
	fmt.Printf("unknown_to_scheduler: [%s]\n", strings.Join(unknown, ", "))
	fmt.Println("gates:")
	needs := map[featuregate.Feature][]featuregate.Feature{}
	if teller, ok := gates.(dependencies); ok {
		needs = teller.Dependencies()
	}
	for _, name := range sorted(all) {
		printGate(name, all[name], needs[name])
	}
}

// Only stable versions are served unless --runtime-config says more.
func printVersions() {
	fmt.Println("resource_api:")
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsForGroup("resource.k8s.io") {
		stable := !strings.Contains(version.Version, "alpha") && !strings.Contains(version.Version, "beta")
		fmt.Printf("  %s: {served_by_default: %t}\n", version.Version, stable)
	}
}

func printGate(name featuregate.Feature, spec featuregate.FeatureSpec, needs []featuregate.Feature) {
	stage := strings.ToLower(string(spec.PreRelease))
	if spec.PreRelease == featuregate.GA {
		stage = "ga"
	}
	line := fmt.Sprintf("stage: %s, default: %t", stage, spec.Default)
	if spec.LockToDefault {
		line += ", locked: true"
	}
	if len(needs) > 0 {
		words := make([]string, 0, len(needs))
		for _, need := range needs {
			words = append(words, string(need))
		}
		slices.Sort(words)
		line += ", needs: [" + strings.Join(words, ", ") + "]"
	}
	fmt.Printf("  %s: {%s}\n", name, line)
}

func sorted(gates map[featuregate.Feature]featuregate.FeatureSpec) []featuregate.Feature {
	names := make([]featuregate.Feature, 0, len(gates))
	for name := range gates {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
