// Prints the columns that kube-apiserver shows of the built-in kinds on standard input (as in
// crates/apimachinery/src/openapi/generate/kinds.txt) as JSON, one kind per line, and for each column its name, type, format,
// description and priority:
//
//	cd tests/kubernetes/tools && go run ./columns <../../../crates/apimachinery/src/openapi/generate/kinds.txt >../../../crates/apimachinery/src/kinds/columns.json
//
// The descriptions of the name and of the age stand with all kinds and are left out; so are kinds that are never listed.
// tests/kubernetes/generated compares what this prints with what is committed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// Groups whose names are longer than their packages, by the packages' names; the others end in k8s.io.
var groups = map[string]string{"core": "", "apps": "apps", "batch": "batch", "policy": "policy", "autoscaling": "autoscaling", "rbac": "rbac.authorization.k8s.io"}

// Kinds that the embedded API server does not serve, or of which there are never lists.
var without = map[string]bool{
	"PodTemplate": true, "Binding": true, "Eviction": true, "Scale": true, "HorizontalPodAutoscaler": true, "RuntimeClass": true,
}

// Kinds that kube-apiserver shows as objects of which nothing is known, though there is a printer for them.
var plain = map[string]bool{"CSIStorageCapacity": true}

func main() {
	generator := printers.NewTableGenerator().With(internalversion.AddHandlers)
	lines := map[string]string{}
	add := func(kind schema.GroupVersionKind, object runtime.Object) {
		table, err := generator.GenerateTable(object, printers.GenerateOptions{Wide: true})
		if err != nil || plain[kind.Kind] {
			convertor := rest.NewDefaultTableConvertor(schema.GroupResource{Group: kind.Group, Resource: kind.Kind})
			table, err = convertor.ConvertToTable(context.Background(), object, nil)
		}
		check(err)
		lines[kind.Group+"/"+kind.Version+", Kind="+kind.Kind] = columns(table.ColumnDefinitions)
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		place, kinds, _ := strings.Cut(input.Text(), ":")
		short, version, _ := strings.Cut(place, ".")
		group, known := groups[short]
		if !known {
			group = short + ".k8s.io"
		}
		if group == "authentication.k8s.io" || group == "authorization.k8s.io" {
			continue
		}
		for _, name := range strings.Fields(kinds) {
			if without[name] {
				continue
			}
			kind := schema.GroupVersionKind{Group: group, Version: version, Kind: name}
			object, err := legacyscheme.Scheme.New(kind)
			check(err)
			internal, err := legacyscheme.Scheme.UnsafeConvertToVersion(object, schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal})
			check(err)
			add(kind, internal)
		}
	}
	definition := apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	add(definition, &apiextensions.CustomResourceDefinition{})

	var names []string
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("{")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%s:%s%s\n", text(name), lines[name], comma)
	}
	fmt.Println("}")
}

func columns(definitions []metav1.TableColumnDefinition) string {
	known := metav1.ObjectMeta{}.SwaggerDoc()
	var all [][]any
	for _, column := range definitions {
		description := column.Description
		if column.Name == "Name" && description == known["name"] || column.Name == "Age" && description == known["creationTimestamp"] {
			description = ""
		}
		all = append(all, []any{column.Name, column.Type, column.Format, description, column.Priority})
	}
	return text(all)
}

func text(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return strings.TrimSpace(out.String())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
