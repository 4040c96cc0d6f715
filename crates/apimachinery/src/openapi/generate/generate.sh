#!/bin/sh
# Makes ../builtin.json, or the file that is named, from the Go types of Kubernetes; see README.md.
set -eu

VERSION=v0.34.2
OPENAPI=v0.0.0-20250710124328-f3f2b991d03b

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../builtin.json}
case $out in /*) ;; *) out=$PWD/$out ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/dump" "$work/out"
cp "$here/dump.go" "$work/dump/main.go"
cat >"$work/go.mod" <<EOF
module generate

go 1.26
EOF
cat >"$work/tools.go" <<EOF
//go:build tools

package main

import (
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/kube-openapi/cmd/openapi-gen"
)
EOF
cd "$work"
go get "k8s.io/api@$VERSION" "k8s.io/apimachinery@$VERSION" "k8s.io/apiextensions-apiserver@$VERSION" "k8s.io/kube-openapi@$OPENAPI"
touch out/empty.go && echo 'package out' >out/empty.go
go mod tidy
go build -o openapi-gen k8s.io/kube-openapi/cmd/openapi-gen

# Packages of the kinds, and those that they refer to.
packages=$(sed -n 's/^\([a-z]*\)\.\(v[a-z0-9]*\):.*/k8s.io\/api\/\1\/\2/p' "$here/kinds.txt")
./openapi-gen --output-file definitions.go --output-dir out --output-pkg generate/out --go-header-file /dev/null -r /dev/null \
	$packages \
	k8s.io/apimachinery/pkg/apis/meta/v1 \
	k8s.io/apimachinery/pkg/runtime \
	k8s.io/apimachinery/pkg/api/resource \
	k8s.io/apimachinery/pkg/util/intstr \
	k8s.io/apimachinery/pkg/version \
	k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1
rm out/empty.go
go mod tidy
go run ./dump <"$here/kinds.txt" >builtin.json
mv builtin.json "$out"
