package stack

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Tags that the stack has beside those of its options. [Manager.List] finds stacks by them.
const (
	TagVersion       = "ratelimit:version"        // of the program that deployed it last
	TagSchemaVersion = "ratelimit:schema-version" // of the table's layout
	TagName          = "ratelimit:name"           // of the table
	TagAggregator    = "ratelimit:aggregator"     // the code of the aggregator, as [Code.String] has it; only with one

	managedPrefix = "ratelimit:"
	managedTags   = 4
	maxTagValue   = 256
	maxTags       = 50
)

var tagForm = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// tags checks the user's tags by the rules of AWS.
func (c *checker) tags(tags map[string]string) {
	c.want(len(tags) <= maxTags-managedTags, "tags: there are %d; at most %d are allowed beside the %d of the stack", len(tags), maxTags-managedTags, managedTags)
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		value := tags[key]
		n := utf8.RuneCountInString(key)
		c.want(1 <= n && n <= 128, "tags: the key %.200q has %d characters; it must have 1 to 128", key, n)
		c.want(utf8.RuneCountInString(value) <= 256, "tags: the value of %.200q has %d characters; it must have at most 256", key, utf8.RuneCountInString(value))
		c.want(tagForm.MatchString(key) && tagForm.MatchString(value), "tags: %.200q may have letters, digits, spaces and _.:/=+-@ only, in key and value", key)
		lower := strings.ToLower(key)
		c.want(!strings.HasPrefix(lower, "aws:"), "tags: the key %.200q begins with aws:, which is reserved", key)
		c.want(!strings.HasPrefix(lower, managedPrefix), "tags: the key %.200q begins with %s, which the stack itself uses", key, managedPrefix)
	}
}

// tagValue returns the end of a text, with '_' for characters that a tag cannot have.
func tagValue(text string) string {
	runes := []rune(text)
	runes = runes[max(0, len(runes)-maxTagValue):]
	for i, r := range runes {
		if !tagForm.MatchString(string(r)) {
			runes[i] = '_'
		}
	}
	return string(runes)
}

// allTags returns the user's tags and the stack's own.
func (o Options) allTags(version string) map[string]string {
	tags := maps.Clone(o.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[TagVersion] = version
	tags[TagSchemaVersion] = strconv.Itoa(dynamo.SchemaVersion)
	tags[TagName] = o.Name
	if o.Aggregator.On {
		tags[TagAggregator] = tagValue(o.Aggregator.Code.String())
	}
	return tags
}
