// The tests of Kubernetes for a storage driver (test/e2e/storage/external), without the rest of its suite. Arguments are those
// of e2e.test; --storage.testdriver names the driver's definition.
package main

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/storage/external"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"

	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
)

// suite notes whether a test failed.
type suite struct{ failed bool }

func (s *suite) Fail() { s.failed = true }

func main() {
	// The program ginkgo, which runs several of these at a time, also gives the flags of `go test`.
	testing.Init()
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	options, report := framework.CreateGinkgoConfig()
	var tests suite
	ginkgo.RunSpecs(&tests, "external storage", options, report)
	if tests.failed {
		os.Exit(1)
	}
}
