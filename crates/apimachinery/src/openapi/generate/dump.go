// Prints the OpenAPI definitions of the kinds on standard input, and of what they refer to, as JSON, one definition per line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"generate/out"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Kinds that are always there, with no group of their own.
var always = []string{
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
	"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
	"io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Status",
	"io.k8s.apimachinery.pkg.version.Info",
}

// Groups whose names are longer than their packages.
var longer = map[string]string{
	"core": "", "apps": "apps", "batch": "batch", "policy": "policy", "autoscaling": "autoscaling",
	"rbac": "rbac.authorization.k8s.io",
}

func group(short string) string {
	if name, ok := longer[short]; ok {
		return name
	}
	return short + ".k8s.io"
}

func main() {
	const prefix = "#/definitions/"
	definitions := map[string]common.OpenAPIDefinition{}
	all := out.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef(prefix + util.ToRESTFriendlyName(path))
	})
	for path, definition := range all {
		definitions[util.ToRESTFriendlyName(path)] = definition
	}
	kinds := map[string]map[string]interface{}{}
	wanted := append([]string{}, always...)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		place, names, _ := strings.Cut(lines.Text(), ":")
		short, version, _ := strings.Cut(place, ".")
		for _, kind := range strings.Fields(names) {
			name := "io.k8s.api." + place + "." + kind
			kinds[name] = map[string]interface{}{"group": group(short), "version": version, "kind": kind}
			wanted = append(wanted, name)
		}
	}
	kinds[always[0]] = map[string]interface{}{
		"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
	}

	found := map[string]string{}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, done := found[name]; done {
			continue
		}
		definition, known := definitions[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no definition of", name)
			os.Exit(1)
		}
		text, err := json.Marshal(definition.Schema)
		check(err)
		for _, part := range strings.Split(string(text), `"`+prefix)[1:] {
			wanted = append(wanted, part[:strings.IndexByte(part, '"')])
		}
		var fields map[string]interface{}
		check(json.Unmarshal(text, &fields))
		if kind, ok := kinds[name]; ok {
			fields["x-kubernetes-group-version-kind"] = []interface{}{kind}
		}
		var plain strings.Builder
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		check(encoder.Encode(fields))
		found[name] = strings.TrimSpace(plain.String())
	}

	var names []string
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("{")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%q:%s%s\n", name, found[name], comma)
	}
	fmt.Println("}")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
