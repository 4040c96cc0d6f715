// The programs of cert-manager, out of its own packages: its module has no main packages, those are modules of their own
// that have never been released. The name of this module lets it import what is internal to cert-manager.
//
//	cert-manager controller --kubeconfig FILE
//	cert-manager webhook --kubeconfig FILE --namespace NAMESPACE --port PORT --healthz-port PORT --dns-name NAME
//	cert-manager cainjector --kubeconfig FILE
//
// The controllers are those of issuers that sign without another program: self-signed and CA.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	webhookconfig "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var controllers = []string{
	approver.ControllerName, ca.CRControllerName, selfsigned.CRControllerName,
	issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName,
	requestmanager.ControllerName, revisionmanager.ControllerName, trigger.ControllerName,
	clusterissuers.ControllerName, issuers.ControllerName,
}

type options struct {
	kubeconfig, namespace, dnsName string
	port, healthzPort              int
}

func main() {
	programs := map[string]func(context.Context, options) error{"controller": runControllers, "webhook": runWebhook, "cainjector": runInjector}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		log.Fatal("usage: cert-manager controller|webhook|cainjector --kubeconfig FILE")
	}
	var given options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&given.kubeconfig, "kubeconfig", "", "of the cluster")
	flags.StringVar(&given.namespace, "namespace", "cert-manager", "of cert-manager")
	flags.StringVar(&given.dnsName, "dns-name", "", "name by which the API server reaches the webhook")
	flags.IntVar(&given.port, "port", 10250, "of the webhook")
	flags.IntVar(&given.healthzPort, "healthz-port", 6080, "of the webhook's probes")
	_ = flags.Parse(os.Args[2:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logf.Log)
	var logging flag.FlagSet
	klog.InitFlags(&logging)
	_ = logging.Set("v", "2")
	ctx = logf.NewContext(ctx, logf.Log, os.Args[1])
	if err := programs[os.Args[1]](ctx, given); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
}

func runControllers(ctx context.Context, given options) error {
	var all controller.ContextOptions
	all.Kubeconfig = given.kubeconfig
	all.KubernetesAPIQPS, all.KubernetesAPIBurst = 20, 50
	all.ClusterResourceNamespace = given.namespace
	all.CertificateRequestMinimumBackoffDuration = time.Hour
	all.CertificateRequestMaximumBackoffDuration = 32 * time.Hour
	factory, err := controller.NewContextFactory(ctx, all)
	if err != nil {
		return err
	}
	common, err := factory.Build()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	failed := make(chan error, len(controllers))
	for _, name := range controllers {
		one, err := controller.Known()[name](factory)
		if err != nil {
			return err
		}
		group.Go(func() {
			if err := one.Run(5, ctx); err != nil {
				failed <- err
			}
		})
	}
	common.SharedInformerFactory.Start(ctx.Done())
	common.KubeSharedInformerFactory.Start(ctx.Done())
	common.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	log.Print("controllers: started")
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		group.Wait()
		return nil
	}
}

func runWebhook(ctx context.Context, given options) error {
	config := webhookconfig.WebhookConfiguration{
		SecurePort: int32(given.port), HealthzPort: int32(given.healthzPort), KubeConfig: given.kubeconfig, MetricsListenAddress: "0",
	}
	config.TLSConfig.Dynamic.SecretNamespace = given.namespace
	config.TLSConfig.Dynamic.SecretName = "cert-manager-webhook-ca"
	config.TLSConfig.Dynamic.DNSNames = []string{given.dnsName}
	config.TLSConfig.Dynamic.LeafDuration = 7 * 24 * time.Hour
	server, err := webhook.NewCertManagerWebhookServer(logf.FromContext(ctx), config)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func runInjector(ctx context.Context, given options) error {
	config, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(kscheme.AddToScheme(scheme))
	utilruntime.Must(cmscheme.AddToScheme(scheme))
	utilruntime.Must(apiext.AddToScheme(scheme))
	utilruntime.Must(apireg.AddToScheme(scheme))
	// Its user agent is its field manager.
	config = util.RestConfigWithUserAgent(config, "cainjector")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return err
	}
	setup := cainjector.SetupOptions{EnableCertificatesDataSource: true, EnabledReconcilersFor: map[string]bool{
		cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true,
		cainjector.APIServiceName: true, cainjector.CustomResourceDefinitionName: true,
	}}
	if err := cainjector.RegisterAllInjectors(ctx, manager, setup); err != nil {
		return err
	}
	return manager.Start(ctx)
}
