// Says of objects what Argo CD or Flux says of their health:
//
//	gitops-health argo-cd ARGOCD-CM OBJECTS
//	gitops-health flux KUSTOMIZATION OBJECTS
//
// ARGOCD-CM is the ConfigMap with the settings of Argo CD, KUSTOMIZATION the object of Flux, OBJECTS a List in JSON. For each object a line:
// kind/name, status, message.
//
// Scripts run in gopher-lua with the libraries that Argo CD lets them have, and expressions in cel-go with the options and the order of Flux;
// what has no expression is judged by kstatus as Flux has it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/gobwas/glob"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// judge gives the status of an object, and why.
type judge func(*unstructured.Unstructured) (string, string)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: gitops-health argo-cd|flux SETTINGS OBJECTS")
	}
	settings := map[string]func(string) judge{"argo-cd": argo, "flux": flux}[os.Args[1]]
	if settings == nil {
		log.Fatalf("%s: there are argo-cd and flux", os.Args[1])
	}
	of := settings(os.Args[2])
	list := unstructured.UnstructuredList{}
	content, err := os.ReadFile(os.Args[3])
	must(err)
	must(list.UnmarshalJSON(content))
	for _, object := range list.Items {
		verdict, message := of(&object)
		fmt.Printf("%s/%s %s %s\n", object.GetKind(), object.GetName(), verdict, strings.ReplaceAll(message, "\n", " "))
	}
}

// argo finds the script for a kind as Argo CD does: that of its very name before one with wildcards.
func argo(file string) judge {
	config := struct{ Data map[string]string }{}
	read(file, &config)
	scripts := map[string]struct {
		Health string `json:"health.lua"`
	}{}
	must(yaml.UnmarshalStrict([]byte(config.Data["resource.customizations"]), &scripts))
	return func(object *unstructured.Unstructured) (string, string) {
		if object.GetDeletionTimestamp() != nil {
			return "Progressing", "Pending deletion"
		}
		kind := object.GroupVersionKind()
		key := kind.Group + "/" + kind.Kind
		if script, ok := scripts[key]; ok {
			return run(script.Health, object)
		}
		for pattern, script := range scripts {
			if glob.MustCompile(pattern).Match(key) {
				return run(script.Health, object)
			}
		}
		return "none", ""
	}
}

// run has no libraries but the base and tables, and a second.
func run(script string, object *unstructured.Unstructured) (string, string) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		must(state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", value(state, object.Object))
	must(state.DoString(script))
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		log.Fatalf("a script returns %s, and not a table", state.Get(-1).Type())
	}
	verdict := table.RawGetString("status").String()
	switch verdict {
	case "Healthy", "Progressing", "Degraded", "Suspended":
	default:
		log.Fatalf("%s is no status", verdict)
	}
	message := table.RawGetString("message")
	if message.Type() != lua.LTString {
		log.Fatalf("a message is %s: %s", message.Type(), object.GetKind())
	}
	return verdict, message.String()
}

// value is what a script sees: numbers are all floats, and what is null is nil.
func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case bool:
		return lua.LBool(from)
	case int64:
		return lua.LNumber(from)
	case float64:
		return lua.LNumber(from)
	case string:
		return lua.LString(from)
	case []any:
		table := state.CreateTable(len(from), 0)
		for _, each := range from {
			table.Append(value(state, each))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(from))
		for key, each := range from {
			table.RawSetH(lua.LString(key), value(state, each))
		}
		return table
	}
	return lua.LNil
}

// expression is one of a health check; without one, none holds.
type expression struct{ cel.Program }

func parse(text string) expression {
	if text == "" {
		return expression{}
	}
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	must(err)
	tree, issues := env.Parse(text)
	must(issues.Err())
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
	must(err)
	return expression{program}
}

func (it expression) holds(object map[string]any) (bool, error) {
	if it.Program == nil {
		return false, nil
	}
	result, _, err := it.Eval(object)
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("%v is not a boolean", result.Value())
	}
	return holds, nil
}

// flux asks the expressions of the Kustomization, and for kinds without any kstatus. An expression that fails is waited for.
func flux(file string) judge {
	type check struct{ APIVersion, Kind, InProgress, Failed, Current string }
	kustomization := struct {
		Spec struct{ HealthCheckExprs []check }
	}{}
	read(file, &kustomization)
	type named struct {
		status status.Status
		expression
	}
	checks := map[string][]named{}
	for _, it := range kustomization.Spec.HealthCheckExprs {
		checks[it.APIVersion+" "+it.Kind] = []named{
			{status.InProgressStatus, parse(it.InProgress)}, {status.FailedStatus, parse(it.Failed)}, {status.CurrentStatus, parse(it.Current)},
		}
	}
	return func(object *unstructured.Unstructured) (string, string) {
		of, ok := checks[object.GetAPIVersion()+" "+object.GetKind()]
		if !ok {
			result, err := status.Compute(object)
			must(err)
			return string(result.Status), result.Message
		}
		seen, ok, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if ok && seen != object.GetGeneration() {
			return string(status.InProgressStatus), "of another generation"
		}
		for _, it := range of {
			holds, err := it.holds(object.Object)
			if err != nil {
				return string(status.UnknownStatus), err.Error()
			}
			if holds {
				return string(it.status), ""
			}
		}
		return string(status.InProgressStatus), ""
	}
}

func read(file string, into any) {
	content, err := os.ReadFile(file)
	must(err)
	document, err := yaml.YAMLToJSON(content)
	must(err)
	must(json.Unmarshal(document, into))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
