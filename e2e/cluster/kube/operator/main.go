// The programs with which kubeadm makes a cluster and an operator uses it, in one, chosen by the name that starts it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
)

func main() {
	var command *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kubeadm":
		if kubeadm.Run() != nil {
			os.Exit(1)
		}
		return
	case "kubectl":
		command = kubectl.NewDefaultKubectlCommand()
	case "kube-proxy":
		command = proxy.NewProxyCommand()
	default:
		fmt.Fprintf(os.Stderr, "%s: call me kubeadm, kubectl or kube-proxy\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
