// Prints the functions, and the names of types and constants, that rules of a new CustomResourceDefinition may use in the Kubernetes of
// go.mod (crates/apimachinery/src/schema/cel/functions.txt), one overload on each line:
//
//	NAME RESULT ARGUMENT...      a function
//	.NAME RESULT TARGET ARGUMENT...      a function of its first argument
//	=NAME TYPE      a name
//
// "$A" is any type, the same one in a line.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true).NewExpressionsEnv()
	functions := env.Functions()
	opaque := map[string]bool{}
	// Overloads stay in their order: the first one that fits tells what empty lists hold.
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		function := functions[name]
		for _, overload := range function.OverloadDecls() {
			words := []string{name, format(overload.ResultType())}
			if overload.ResultType().Kind() == types.OpaqueKind {
				opaque[overload.ResultType().TypeName()] = true
			}
			if overload.IsMemberFunction() {
				words[0] = "." + name
			}
			for _, argument := range overload.ArgTypes() {
				words = append(words, format(argument))
			}
			fmt.Println(strings.Join(words, " "))
		}
	}
	lines := []string{}
	for name := range opaque {
		if _, issues := env.Compile(name); issues == nil {
			lines = append(lines, "="+name+" type("+name+")")
		}
	}
	for _, variable := range env.Variables() {
		lines = append(lines, "="+variable.Name()+" "+format(variable.Type()))
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Println(line)
	}
}

func format(t *types.Type) string {
	name := t.DeclaredTypeName()
	switch t.Kind() {
	case types.TypeParamKind:
		return "$" + t.TypeName()
	case types.NullTypeKind:
		name = "null"
	case types.DurationKind:
		name = "duration"
	case types.TimestampKind:
		name = "timestamp"
	}
	if len(t.Parameters()) == 0 {
		return name
	}
	parameters := []string{}
	for _, parameter := range t.Parameters() {
		parameters = append(parameters, format(parameter))
	}
	return t.TypeName() + "(" + strings.Join(parameters, ",") + ")"
}
