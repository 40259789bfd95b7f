package server

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/ratelimit/ratelimit/config"
)

// Variables of the environment that decide here. The others are read by the SDK.
const (
	disabledVariable       = "OTEL_SDK_DISABLED"
	exporterVariable       = "OTEL_TRACES_EXPORTER"
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	traceEndpointVariable  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	propagatorsVariable    = "OTEL_PROPAGATORS"
	samplerVariable        = "OTEL_TRACES_SAMPLER"
	samplerArgVariable     = "OTEL_TRACES_SAMPLER_ARG"
)

// The protocols of a collector.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// enabled reports whether the environment or the settings ask for traces, and the protocol of the collector. A value
// that cannot be obeyed is an error.
func enabled(of *config.Tracing) (protocol string, on bool, err error) {
	if of.Off || strings.EqualFold(os.Getenv(disabledVariable), "true") {
		return "", false, nil
	}
	switch exporter := os.Getenv(exporterVariable); exporter {
	case "otlp":
	case "none":
		return "", false, nil
	case "":
		if !of.On && of.Endpoint == "" && os.Getenv(endpointVariable) == "" && os.Getenv(traceEndpointVariable) == "" {
			return "", false, nil
		}
	default:
		return "", false, fmt.Errorf("%s is %.50q; it must be otlp or none", exporterVariable, exporter)
	}
	protocol = cmp.Or(os.Getenv(tracesProtocolVariable), os.Getenv(protocolVariable), of.Protocol, protocolGRPC)
	if protocol != protocolHTTP && protocol != protocolGRPC {
		return "", false, fmt.Errorf("%s is %.50q; it must be grpc or http/protobuf", protocolVariable, protocol)
	}
	if err := checkVariables(); err != nil {
		return "", false, err
	}
	return protocol, true, checkSampler(os.Getenv(samplerVariable), os.Getenv(samplerArgVariable))
}

// checkSampler refuses samplers that the SDK would replace by its default.
func checkSampler(name, arg string) error {
	const ratio = "traceidratio"
	kind := strings.TrimPrefix(name, "parentbased_")
	switch kind {
	case "always_on", "always_off", ratio:
	default:
		if name != "" {
			return fmt.Errorf("%s is %.50q; it must be always_on, always_off or traceidratio, or one of them with parentbased_ before it", samplerVariable, name)
		}
	}
	share, err := strconv.ParseFloat(arg, 64)
	if kind == ratio && arg != "" && (err != nil || !(share >= 0 && share <= 1)) {
		return fmt.Errorf("%s is %.50q; it must be 0 to 1, such as 0.01", samplerArgVariable, arg)
	}
	return nil
}

// propagators returns those that the environment names, by default W3C's trace context and
// baggage.
func propagators() (propagation.TextMapPropagator, error) {
	var all []propagation.TextMapPropagator
	for name := range strings.SplitSeq(cmp.Or(os.Getenv(propagatorsVariable), "tracecontext,baggage"), ",") {
		switch strings.TrimSpace(name) {
		case "tracecontext":
			all = append(all, propagation.TraceContext{})
		case "baggage":
			all = append(all, propagation.Baggage{})
		case "none":
		default:
			return nil, fmt.Errorf("%s has %.50q; it must be a list of tracecontext and baggage, or none", propagatorsVariable, name)
		}
	}
	return propagation.NewCompositeTextMapPropagator(all...), nil
}
