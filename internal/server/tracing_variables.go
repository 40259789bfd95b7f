package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// The SDK takes its default where it cannot obey a variable, writes the value to the standard error, and panics for some numbers.
// So they are checked before it reads them. No error repeats the value of a header, which may be a secret.

// maxQueue bounds the spans that wait: the SDK makes room for all of them at the start.
const maxQueue = 1_000_000

// checkVariables refuses variables that the SDK cannot follow.
func checkVariables() error {
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"} {
		if err := checkNumber(name, maxQueue); err != nil {
			return err
		}
	}
	const day = 24 * 60 * 60 * 1000
	for _, name := range []string{
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT",
		"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	} {
		if err := checkNumber(name, day); err != nil {
			return err
		}
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		for _, check := range []func(prefix string) error{checkEndpoint, checkHeaders, checkCertificates, checkCompression} {
			if err := check(prefix); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNumber refuses a value that is no number from 1 to most.
func checkNumber(name string, most int) error {
	text := os.Getenv(name)
	if text == "" {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err != nil || n < 1 || n > most {
		return fmt.Errorf("%s is %.50q; it must be a whole number, 1 to %d", name, text, most)
	}
	return nil
}

// checkEndpoint refuses an address that gRPC cannot call.
func checkEndpoint(prefix string) error {
	name := prefix + "ENDPOINT"
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	ok := err == nil
	if ok && (u.Scheme == "http" || u.Scheme == "https") {
		port, err := strconv.ParseUint("0"+u.Port(), 10, 16)
		ok = u.Hostname() != "" && u.User == nil && err == nil && (port > 0 || u.Port() == "") && !strings.HasSuffix(u.Host, ":")
	}
	if !ok {
		return fmt.Errorf("%s is no address of a collector; it must be one such as http://collector:4317, or https", name)
	}
	return nil
}

// checkHeaders refuses headers that would not be sent.
func checkHeaders(prefix string) error {
	name := prefix + "HEADERS"
	text := os.Getenv(name)
	if text == "" {
		return nil
	}
	for i, pair := range strings.Split(text, ",") {
		key, value, found := strings.Cut(pair, "=")
		_, err := url.PathUnescape(value)
		if !found || err != nil || !isHeader(strings.TrimSpace(key)) {
			return fmt.Errorf("%s: header %d cannot be sent; the headers must be key=value, with a comma between them and values escaped as in a URL", name, i+1)
		}
	}
	return nil
}

// isHeader reports whether a key is one of gRPC.
func isHeader(key string) bool {
	return key != "" && strings.Trim(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// checkCertificates refuses files that cannot be read, so that no connection is made without them.
func checkCertificates(prefix string) error {
	if file := os.Getenv(prefix + "CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file) // #nosec G304 G703 -- the operator names it
		if err != nil {
			return fmt.Errorf("%sCERTIFICATE: %w", prefix, err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("%sCERTIFICATE: %s has no certificate in PEM", prefix, file)
		}
	}
	cert, key := os.Getenv(prefix+"CLIENT_CERTIFICATE"), os.Getenv(prefix+"CLIENT_KEY")
	if cert == "" && key == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return fmt.Errorf("%sCLIENT_CERTIFICATE and %sCLIENT_KEY: %w", prefix, prefix, err)
	}
	return nil
}

// checkCompression refuses a compression that the SDK would replace by none.
func checkCompression(prefix string) error {
	name := prefix + "COMPRESSION"
	if text := os.Getenv(name); text != "" && text != "gzip" && text != "none" {
		return fmt.Errorf("%s is %.50q; it must be gzip or none", name, text)
	}
	return nil
}
