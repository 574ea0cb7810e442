// What a cluster needs that Kubernetes leaves to others, in one binary, which is the program that it is called by.
package main

import (
	"log"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var programs = map[string]func(){"coredns": serveNames, "netpol": enforcePolicies, "volumes": makeVolumes}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		log.Fatalf("%s is no part of a cluster", name)
	}
	program()
}

// must ends the program where it cannot go on; whoever started it starts it again.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func connect(kubeconfig string) *kubernetes.Clientset {
	return must(kubernetes.NewForConfig(must(clientcmd.BuildConfigFromFlags("", kubeconfig))))
}
