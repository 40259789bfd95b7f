package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// NewExport returns the command export.
func NewExport() *cobra.Command {
	var o operator
	cmd := &cobra.Command{
		Use: "export", Short: "Print all entities and limits as a manifest", Args: command.NoArgs,
		Long: `export prints the entities and the stored limits of a namespace, in the form that apply
takes. Balances, usage and the audit are in a backup, not in a manifest.`,
		Example: `  ratelimit export > limits.yaml
  ratelimit export -n staging -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("output") {
				o.output = command.OutputYAML
			}
			return export(cmd, &o)
		},
	}
	o.flags(cmd)
	return cmd
}

func export(cmd *cobra.Command, o *operator) error {
	if o.output != command.OutputYAML && o.output != command.OutputJSON {
		return fmt.Errorf("--output is %.100q; export writes yaml or json", o.output)
	}
	n, err := o.inNamespace(cmd.Context())
	if err != nil {
		return err
	}
	records, err := manifest.List(cmd.Context(), n)
	if err != nil {
		return o.refusalIn(cmd.Context(), err)
	}
	list := exported{Items: manifest.Contents(records)}
	if o.namespace != limiter.DefaultNamespace {
		list.Namespace = o.namespace
	}
	if o.output == command.OutputYAML {
		return command.Failed(list.writeYAML(cmd.OutOrStdout()))
	}
	return command.WriteOne[any](cmd.OutOrStdout(), o.output, nil, nil, list)
}

// exported is a manifest of all records.
type exported struct {
	Namespace string `json:"namespace,omitempty"`
	Items     []any  `json:"items"`
}

// writeYAML writes the manifest with the amounts of limits as people write them, such as 700 USD/hour.
func (e exported) writeYAML(w io.Writer) error {
	return command.WriteYAMLAs(w, e, func(doc *yaml.Node) {
		for _, item := range member(doc.Content[0], "items").Content {
			if limits := member(item, "limits"); limits != nil {
				for i := 0; i+1 < len(limits.Content); i += 2 {
					asPeopleWrite(limits.Content[i].Value, limits.Content[i+1])
				}
			}
		}
	})
}

// asPeopleWrite changes the numbers and the rate of a limit, but for no keys.
func asPeopleWrite(limit string, node *yaml.Node) {
	for i := 1; i < len(node.Content); i += 2 {
		asPeopleWrite(limit, node.Content[i])
	}
	if node.Kind != yaml.ScalarNode {
		return
	}
	if node.Value = money.Amounts(limit, node.Value); strings.Contains(node.Value, " ") {
		node.Tag = "!!str"
	}
}

// member returns the value of a key of a mapping; nil = there is none.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
