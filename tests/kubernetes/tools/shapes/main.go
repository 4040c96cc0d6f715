// Prints the fields of the Go types of the built-in kinds on standard input (as in
// crates/apimachinery/src/openapi/generate/kinds.txt) and of what they refer to, as JSON, one type per line:
//
//	cd tests/kubernetes/tools && go run ./shapes <../../../crates/apimachinery/src/openapi/generate/kinds.txt >../../../crates/apimachinery/src/kinds/shapes.json
//
// With -protobuf it prints the numbers of the fields instead, for crates/apimachinery/src/kinds/protobuf.json; a name that
// begins with "@" is that of a type whose fields stand in the one that holds it.
//
// With -wire it prints the fields of what else travels as protobuf, definitions, lists and failures, for
// crates/apimachinery/src/kinds/wire.json.
//
// A field is written even when it is empty where its type begins with "!"; "*" is a pointer, "[]" a list, "{}" a map.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var groups = map[string]string{"core": "", "apps": "apps", "batch": "batch", "policy": "policy", "autoscaling": "autoscaling", "rbac": "rbac.authorization.k8s.io"}

// Types that write themselves.
var own = map[string]string{
	"resource.Quantity": "quantity", "v1.Time": "time", "v1.MicroTime": "time", "v1.Duration": "string",
	"intstr.IntOrString": "intorstring", "v1.FieldsV1": "any", "runtime.RawExtension": "any",
	"v1.JSON": "any", "v1.JSONSchemaPropsOrBool": "schema-or-bool", "v1.JSONSchemaPropsOrArray": "schema-or-list",
	"v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
}

// What else travels as protobuf.
var others = map[string]any{
	"apiextensions.k8s.io/v1, Kind=CustomResourceDefinition": apiextensions.CustomResourceDefinition{},
	"/v1, Kind=Status":                           meta.Status{},
	"meta.k8s.io/v1, Kind=PartialObjectMetadata": meta.PartialObjectMetadata{},
	"meta.k8s.io/v1, Kind=List":                  meta.ListMeta{},
}

var found = map[string]string{}

// Whether numbers are printed, or what else travels as protobuf.
var (
	numbers = len(os.Args) > 1 && os.Args[1] == "-protobuf"
	wire    = len(os.Args) > 1 && os.Args[1] == "-wire"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		place, kinds, _ := strings.Cut(lines.Text(), ":")
		short, version, _ := strings.Cut(place, ".")
		group, known := groups[short]
		if !known {
			group = short + ".k8s.io"
		}
		for _, kind := range strings.Fields(kinds) {
			object, err := scheme.Scheme.New(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
			if err != nil {
				fmt.Fprintln(os.Stderr, "left out:", err)
				continue
			}
			t := reflect.TypeOf(object).Elem()
			describe(t)
			if numbers {
				continue
			}
			found[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}.String()] = fmt.Sprintf("%q", name(t))
		}
	}
	// Of definitions the status alone: their schemas write themselves.
	describe(reflect.TypeOf(apiextensions.CustomResourceDefinitionStatus{}))
	known := map[string]bool{}
	for name := range found {
		known[name] = wire
	}
	for kind, object := range others {
		if !numbers && !wire {
			break
		}
		t := reflect.TypeOf(object)
		describe(t)
		if wire {
			found[kind] = fmt.Sprintf("%q", name(t))
		}
	}
	var names []string
	for name := range found {
		if known[name] {
			continue
		}
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

// The name of a struct with its package's path, as far as it tells packages apart.
func name(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")
	path = strings.TrimPrefix(path, "k8s.io/apimachinery/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apis/")
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func describe(t reflect.Type) {
	if _, done := found[name(t)]; done {
		return
	}
	found[name(t)] = ""
	fields := map[string]string{}
	if numbers {
		count(t, fields)
	} else {
		collect(t, fields)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	found[name(t)] = string(text)
}

func collect(t reflect.Type, fields map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			collect(field.Type, fields)
			continue
		}
		if tag == "-" {
			continue
		}
		always := !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") ||
			field.Type.Kind() == reflect.Struct && !strings.Contains(options, "omitzero")
		text := typeName(field.Type)
		if always {
			text = "!" + text
		}
		fields[tag] = text
	}
}

// The fields of a struct by their numbers.
func count(t reflect.Type, fields map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		parts := strings.Split(field.Tag.Get("protobuf"), ",")
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if len(parts) < 2 || tag == "-" {
			continue
		}
		text := typeName(field.Type)
		if field.Anonymous && tag == "" {
			tag = "@" + text
		}
		fields[parts[1]] = tag
	}
}

func typeName(t reflect.Type) string {
	if known, ok := own[t.String()]; ok {
		return known
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "[]byte"
		}
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "{}" + typeName(t.Elem())
	case reflect.Struct:
		describe(t)
		return name(t)
	}
	return t.Kind().String()
}
