package awscmd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsOfAFunction(t *testing.T) {
	variables := map[string]string{"RATELIMIT_TABLE": "limits", "RATELIMIT_WINDOWS": "hour,day", "RATELIMIT_KEEP": "hour=720h", "RATELIMIT_ARCHIVE": "s3://audit-events", "RATELIMIT_CONFIG": "s3://fleet/ratelimit.yaml"}
	get := func(name string) string { return variables[name] }
	if got := Arguments(nil, get); len(got) != 0 {
		t.Errorf("without a runtime: %q", got)
	}
	variables["AWS_LAMBDA_RUNTIME_API"] = "127.0.0.1:9001"
	want := []string{"aggregate", "--lambda", "--table=limits", "--windows=hour,day", "--keep=hour=720h", "--archive=s3://audit-events", "--config=s3://fleet/ratelimit.yaml"}
	if diff := cmp.Diff(want, Arguments(nil, get)); diff != "" {
		t.Errorf("of a function (-want +got):\n%s", diff)
	}
	if got := Arguments([]string{"version"}, get); !slices.Equal(got, []string{"version"}) {
		t.Errorf("with arguments: %q", got)
	}
}
