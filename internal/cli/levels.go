package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// levelFlags say whose limits are meant.
type levelFlags struct {
	system           bool
	entity, resource string
}

func (f *levelFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.system, "system", false, "the limits of all that has no others")
	filledVar(cmd.Flags(), &f.entity, "entity", "the limits of this entity, for --resource, or for every resource without")
	filledVar(cmd.Flags(), &f.resource, "resource", "the limits of this resource, of --entity or in general")
}

// of returns the one level that the flags name.
func (f *levelFlags) of() (api.LimitsOf, error) {
	if f.system == (f.entity != "" || f.resource != "") {
		return api.LimitsOf{}, errors.New("say whose limits: --system, --resource NAME, --entity ID, or --entity ID --resource NAME")
	}
	return api.LimitsOf{Entity: api.Name(f.entity), Resource: api.Name(f.resource)}, nil
}

// subject says for people whose limits are meant.
func (f *levelFlags) subject() string {
	switch {
	case f.entity != "" && f.resource != "":
		return "limits of entity " + api.Name(f.entity).String() + " for resource " + api.Name(f.resource).String()
	case f.entity != "":
		return "limits of entity " + api.Name(f.entity).String()
	case f.resource != "":
		return "limits of resource " + api.Name(f.resource).String()
	}
	return "limits of the system"
}

// Subjects of the audit that are no entities.
const (
	subjectSystem   = "$SYSTEM"
	subjectResource = "$RESOURCE:"
)
