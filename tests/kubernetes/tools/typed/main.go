// Typed clients that speak nothing but protobuf, as those of client-go and of CustomResourceDefinitions do for the kinds whose
// Go types they know: objects, lists, watches, failures, metadata, the OpenAPI document.
//
//	KUBECONFIG=… typed NAMESPACE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/util/proto"
)

const protobuf = "application/vnd.kubernetes.protobuf"

var namespace string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "typed NAMESPACE")
		os.Exit(2)
	}
	namespace = os.Args[1]
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf
	config.QPS = -1
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)
	_, err = client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}, meta.CreateOptions{})
	check(err)
	objects(ctx, client)
	lists(ctx, client)
	crds(ctx, config)
	only(ctx, config)
	document(client)
	check(client.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{}))
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// An object without what no two servers have the same; encoded anew, so that what was read is what is shown.
func show(what string, object runtime.Object, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		status := apierrors.APIStatus(nil)
		if errors.As(err, &status) {
			text, _ := json.Marshal(status.Status())
			fmt.Printf("\t%s\n", text)
		}
		return
	}
	text, err := json.Marshal(object)
	check(err)
	var fields map[string]any
	check(json.Unmarshal(text, &fields))
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, field := range []string{"managedFields", "resourceVersion", "uid"} {
			delete(metadata, field)
		}
	}
	text, err = json.Marshal(fields)
	check(err)
	fmt.Printf("%s: %s\n", what, text)
}

func objects(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	events, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "watched=yes"})
	check(err)
	labels := map[string]string{"watched": "yes"}
	made, err := maps.Create(ctx, &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: "a", Labels: labels}, Data: map[string]string{"k": "ü", "empty": ""},
		BinaryData: map[string][]byte{"b": {0, 255}},
	}, meta.CreateOptions{})
	show("create", made, err)
	made.Data["l"] = "m"
	made, err = maps.Update(ctx, made, meta.UpdateOptions{})
	show("update", made, err)
	fmt.Println("managers:", len(made.ManagedFields), string(made.ManagedFields[0].FieldsV1.Raw))
	made, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"l":null}}`), meta.PatchOptions{})
	show("patch", made, err)
	show("delete", nil, maps.Delete(ctx, "absent", meta.DeleteOptions{}))
	check(maps.Delete(ctx, "a", meta.DeleteOptions{}))
	made, err = maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "No"}}, meta.CreateOptions{})
	show("create what is wrong", made, err)
	for range 4 {
		event := <-events.ResultChan()
		show(string(event.Type), event.Object, nil)
		if event.Type == watch.Deleted {
			break
		}
	}
	events.Stop()

	replicas, surge, unavailable := int32(0), intstr.FromString("25%"), intstr.FromInt32(1)
	deployment, err := client.AppsV1().Deployments(namespace).Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "d"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels},
			Strategy: apps.DeploymentStrategy{Type: apps.RollingUpdateDeploymentStrategyType, RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec: core.PodSpec{
					Containers: []core.Container{{
						Name: "c", Image: "i", Ports: []core.ContainerPort{{ContainerPort: 80}},
						Resources:     core.ResourceRequirements{Requests: core.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1Gi")}},
						LivenessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
					}},
					Volumes: []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}, meta.CreateOptions{})
	show("deployment", deployment, err)
	scale, err := client.AppsV1().Deployments(namespace).GetScale(ctx, "d", meta.GetOptions{})
	show("scale", scale, err)
}

func lists(ctx context.Context, client kubernetes.Interface) {
	all := map[string]func() (runtime.Object, error){
		"namespaces": func() (runtime.Object, error) {
			return client.CoreV1().Namespaces().List(ctx, meta.ListOptions{FieldSelector: "metadata.name=" + namespace})
		},
		"deployments": func() (runtime.Object, error) {
			return client.AppsV1().Deployments(namespace).List(ctx, meta.ListOptions{Limit: 1})
		},
		"leases": func() (runtime.Object, error) {
			return client.CoordinationV1().Leases(namespace).List(ctx, meta.ListOptions{})
		},
		"roles": func() (runtime.Object, error) { return client.RbacV1().Roles(namespace).List(ctx, meta.ListOptions{}) },
		"an old revision": func() (runtime.Object, error) {
			return client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{ResourceVersion: "x"})
		},
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		list, err := all[name]()
		if name == "namespaces" && err == nil {
			fmt.Println("namespaces:", len(list.(*core.NamespaceList).Items))
			continue
		}
		show(name, list, err)
	}
}

func crds(ctx context.Context, config *rest.Config) {
	client := definitions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	name := "typed.clients.ferrostack.test"
	one, preserve := float64(1), true
	schema := apiextensions.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensions.JSONSchemaProps{
			"size": {Type: "integer", Minimum: &one, Default: &apiextensions.JSON{Raw: []byte("3")}, Enum: []apiextensions.JSON{{Raw: []byte("3")}, {Raw: []byte("4")}}},
			"list": {Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{Type: "string"}}},
			"map":  {Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensions.JSONSchemaProps{Type: "number"}}},
			"any":  {Type: "object", XPreserveUnknownFields: &preserve},
			"port": {XIntOrString: true},
		},
		XValidations: apiextensions.ValidationRules{{Rule: "!has(self.size) || self.size < 9", Message: "too large"}},
	}
	definition := &apiextensions.CustomResourceDefinition{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "clients.ferrostack.test", Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "typed", Singular: "type", Kind: "Typed"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources:             &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensions.CustomResourceColumnDefinition{{Name: "Size", Type: "integer", JSONPath: ".size"}},
			}},
		},
	}
	events, err := client.Watch(ctx, meta.ListOptions{FieldSelector: "metadata.name=" + name})
	check(err)
	made, err := client.Create(ctx, definition, meta.CreateOptions{})
	if err == nil {
		made.Status = apiextensions.CustomResourceDefinitionStatus{}
	}
	show("definition", made, err)
	event := <-events.ResultChan()
	fmt.Println("event:", event.Type, event.Object.(*apiextensions.CustomResourceDefinition).Spec.Names.Kind)
	events.Stop()
	for {
		made, err = client.Get(ctx, name, meta.GetOptions{})
		check(err)
		established := false
		for _, condition := range made.Status.Conditions {
			established = established || condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue
		}
		if established {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	show("established", made, nil)
	made.Labels = map[string]string{"a": "b"}
	made, err = client.Update(ctx, made, meta.UpdateOptions{})
	show("labelled", made, err)
	list, err := client.List(ctx, meta.ListOptions{LabelSelector: "a=b"})
	check(err)
	fmt.Println("definitions:", len(list.Items))
	definition.Name = "other.clients.ferrostack.test"
	made, err = client.Create(ctx, definition, meta.CreateOptions{})
	show("wrong definition", made, err)
	check(client.Delete(ctx, name, meta.DeleteOptions{}))
}

// Metadata alone, which even custom kinds have in protobuf.
func only(ctx context.Context, config *rest.Config) {
	client := metadata.NewForConfigOrDie(config)
	deployments := client.Resource(apps.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace)
	one, err := deployments.Get(ctx, "d", meta.GetOptions{})
	show("metadata", one, err)
	list, err := deployments.List(ctx, meta.ListOptions{})
	check(err)
	fmt.Println("metadata:", len(list.Items), list.Items[0].Name)
}

func document(client kubernetes.Interface) {
	document, err := client.Discovery().OpenAPISchema()
	check(err)
	fmt.Println("document:", document.Swagger, document.Info.Title)
	models, err := proto.NewOpenAPIData(document)
	check(err)
	for _, name := range []string{"io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.Container"} {
		model := models.LookupModel(name)
		if model == nil {
			fmt.Println(name, "is not there")
			continue
		}
		kind, ok := model.(*proto.Kind)
		if !ok {
			fmt.Printf("%s is a %T\n", name, model)
			continue
		}
		keys := kind.Keys()
		sort.Strings(keys)
		fmt.Println(name, kind.RequiredFields, keys, kind.GetExtensions()["x-kubernetes-group-version-kind"])
	}
	for _, path := range document.Paths.Path {
		if path.Name == "/api/v1/namespaces/{namespace}/configmaps" {
			fmt.Println(path.Name, path.Value.Get != nil, path.Value.Put != nil, len(path.Value.Post.VendorExtension))
		}
	}
}
