// Prints what a URL answers, from within a pod: names are resolved as the pod's resolv.conf says, and with -account the request
// is made with the token of the pod's service account and verified by the authority that was mounted with it.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	asAccount := flag.Bool("account", false, "use the token and the authority of the pod's service account")
	flag.Parse()
	if err := get(flag.Arg(0), *asAccount); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func get(url string, asAccount bool) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 10 * time.Second}
	if asAccount {
		token, err := os.ReadFile(account + "token")
		if err != nil {
			return err
		}
		authority, err := os.ReadFile(account + "ca.crt")
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		request.Header.Set("Authorization", "Bearer "+string(token))
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	fmt.Println(response.Status)
	return nil
}
