package dynamo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// recordKind is what an item of the table is.
type recordKind uint8

const (
	kindEntity recordKind = iota
	kindBucket
	kindEntityLimits
	kindResourceLimits
	kindSystemLimits
	kindUsage
	kindAudit
	kindVersion
	kindGeneration
	kindChange
	kindNamespace
	kindNamespaceID
	kindMark
	kindSecret
)

// parsedKey is what an item's key says of it. The fields that its kind has are set.
type parsedKey struct {
	kind       recordKind
	ns         string // id of the namespace
	entity     string // for an audit event: its subject, as it stands in keys
	resource   string
	name       string // of a namespace, or its id; of a secret
	settled    string // id of a reservation
	hashed     bool   // a name is longer than keys hold: it is here as it stands in keys
	variant    uint64
	shard      int
	window     window
	generation uint64
	event      string // id of an audit event
}

const (
	digits     = "0123456789"
	lowerHex   = digits + "abcdef"
	timeChars  = digits + "TZ:.-"
	idChars    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	nsIDLength = 11

	secretChars = "abcdefghijklmnopqrstuvwxyz0123456789-"
)

// isForm reports whether s is n of the characters.
func isForm(s string, n int, chars string) bool {
	return len(s) == n && strings.Trim(s, chars) == ""
}

func isNamespaceID(s string) bool { return isForm(s, nsIDLength, idChars) }

// isSecretName reports whether limiter.CheckSecret allows the name.
func isSecretName(s string) bool {
	return len(s) <= limiter.MaxSecretNameLength && s != "" && isForm(s, len(s), secretChars)
}

// isAuditID reports whether s is what limiter.AuditID returns.
func isAuditID(s string) bool {
	return len(s) == 41 && isForm(s[:24], 24, timeChars) && s[24] == '-' && isForm(s[25:], 16, lowerHex)
}

// parseKey undoes the functions that build keys. It accepts what they build and
// nothing else.
func parseKey(k key) (parsedKey, error) {
	p := &keyParser{}
	ns, rest, found := strings.Cut(k.pk, "/")
	if !found || ns != registryNS && !isNamespaceID(ns) {
		return parsedKey{}, fmt.Errorf("%v is no key of a record: PK must begin with the 11-character id of a namespace, or %q, and '/'", k, registryNS)
	}
	p.key.ns = ns
	kind, id, _ := strings.Cut(rest, "#")
	switch {
	case kind == "SYSTEM" && id == "" && ns == registryNS:
		p.registry(k.sk)
	case kind == "SYSTEM" && id == "":
		p.system(k.sk)
	case kind == "SECRET" && ns == registryNS:
		p.key.kind, p.key.name = kindSecret, p.require(isSecretName, id, "name of a secret")
		p.equal(k.sk, skSecret)
	case ns == registryNS:
		p.fail("%s is not in the registry", rest)
	case kind == "ENTITY":
		p.key.entity = p.part(id)
		p.entity(k.sk)
	case kind == "RESOURCE":
		p.key.kind, p.key.resource = kindResourceLimits, p.part(id)
		p.equal(k.sk, skConfig)
	case kind == "BUCKET":
		p.key.kind = kindBucket
		p.bucket(strings.Split(id, "#"))
		p.equal(k.sk, skState)
	case kind == "SETTLED":
		p.key.kind, p.key.settled = kindMark, p.part(id)
		p.equal(k.sk, skMark)
	case kind == "AUDIT":
		p.key.kind, p.key.entity = kindAudit, id
		_, p.key.hashed = p.subject(id)
		p.key.event = p.require(isAuditID, p.after(k.sk, skAuditPrefix), "id of an audit event")
	default:
		p.fail("there is no kind %q", kind)
	}
	if p.err != nil {
		return parsedKey{}, fmt.Errorf("%v is no key of a record: %w", k, p.err)
	}
	return p.key, nil
}

// keyParser fills in a parsedKey until something is wrong.
type keyParser struct {
	key parsedKey
	err error
}

func (p *keyParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *keyParser) part(s string) string {
	name, hashed, err := parseName(s)
	if err != nil {
		p.fail("%w", err)
	}
	p.key.hashed = p.key.hashed || hashed
	return name
}

func (p *keyParser) equal(got, want string) {
	if got != want {
		p.fail("SK is %q, want %q", got, want)
	}
}

func (p *keyParser) after(s, prefix string) string {
	rest, found := strings.CutPrefix(s, prefix)
	if !found {
		p.fail("SK is %q, want %q and what follows", s, prefix)
	}
	return rest
}

func (p *keyParser) require(is func(string) bool, s, what string) string {
	if !is(s) {
		p.fail("%q is no %s", s, what)
	}
	return s
}

// number parses a number of a fixed length.
func (p *keyParser) number(s string, length, base int) uint64 {
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil || !isForm(s, length, lowerHex) {
		p.fail("%q is no number of %d digits", s, length)
	}
	return n
}

func (p *keyParser) subject(s string) (name string, hashed bool) {
	name, hashed, err := parseSubject(s)
	if err != nil {
		p.fail("%w", err)
	}
	return name, hashed
}

func (p *keyParser) registry(sk string) {
	switch {
	case sk == skVersion:
		p.key.kind = kindVersion
	case sk == skGeneration:
		p.key.kind = kindGeneration
	case strings.HasPrefix(sk, skNamespacePrefix):
		p.key.kind, p.key.name = kindNamespace, p.part(strings.TrimPrefix(sk, skNamespacePrefix))
	default:
		p.key.kind, p.key.name = kindNamespaceID, p.require(isNamespaceID, p.after(sk, skNSIDPrefix), "id of a namespace")
	}
}

func (p *keyParser) system(sk string) {
	switch sk {
	case skConfig:
		p.key.kind = kindSystemLimits
	case skGeneration:
		p.key.kind = kindGeneration
	default:
		p.key.kind = kindChange
		p.key.generation = p.number(p.after(sk, skChangePrefix), 20, 10)
	}
}

func (p *keyParser) entity(sk string) {
	switch {
	case sk == skMeta:
		p.key.kind = kindEntity
	case strings.HasPrefix(sk, skUsagePrefix):
		resource, start, _ := strings.Cut(strings.TrimPrefix(sk, skUsagePrefix), "#")
		w, err := parseWindow(start)
		if err != nil {
			p.fail("%w", err)
		}
		p.key.kind, p.key.resource, p.key.window = kindUsage, p.part(resource), w
	default:
		p.key.kind, p.key.resource = kindEntityLimits, p.part(p.after(sk, skConfigPrefix))
	}
}

// bucket parses entity, resource, variant if there is one, and shard.
func (p *keyParser) bucket(parts []string) {
	if len(parts) != 3 && len(parts) != 4 {
		p.fail("a bucket's key has an entity, a resource, maybe a variant, and a shard")
		return
	}
	p.key.entity, p.key.resource = p.part(parts[0]), p.part(parts[1])
	if len(parts) == 4 {
		if p.key.variant = p.number(parts[2], 16, 16); p.key.variant == 0 {
			p.fail("variant %q: a variant is not 0", parts[2])
		}
	}
	shard := parts[len(parts)-1]
	n, err := strconv.Atoi(shard)
	if err != nil || n < 0 || n >= maxShards || strconv.Itoa(n) != shard {
		p.fail("shard %q: want 0 to %d", shard, maxShards-1)
	}
	p.key.shard = n
}

// Subjects of audit events that are no entities. No entity's name in a key has '$'.
const (
	subjectSystem         = "$SYSTEM"
	subjectResourcePrefix = "$RESOURCE:"
)

// parseSubject returns the entity or resource that audit events are about; "" for the system.
func parseSubject(s string) (name string, hashed bool, err error) {
	if s == subjectSystem {
		return "", false, nil
	}
	if resource, found := strings.CutPrefix(s, subjectResourcePrefix); found {
		return parseName(resource)
	}
	if strings.HasPrefix(s, "$") {
		return "", false, errors.New("the subject of an audit event is an entity, $RESOURCE: with a resource, or $SYSTEM")
	}
	return parseName(s)
}
