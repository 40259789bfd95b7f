package config

import (
	"encoding/base64"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Reservation says how the ids of reservations are made.
type Reservation struct {
	// Keys are at most maxKeys keys of 32 to 64 bytes. The first one makes ids, and ids of all keys
	// are accepted. None = a key in the store, which every replica reads.
	Keys [][]byte
	TTL  time.Duration // how long a reservation can be settled, 1s to 24h; default 10m
}

const maxKeys = 8

// sealingKey is a key in the form of the file: its text, or the name of a file with the text.
type sealingKey struct {
	text string
	file string
	at   yamlcfg.Place
}

// reservation is the section of reservations. Its keys are read later.
func reservation(ttl *time.Duration, sealing *[]sealingKey) yamlcfg.Schema {
	return yamlcfg.Confidential{Schema: yamlcfg.Object{Title: "reservation", Keys: []yamlcfg.Key{
		key("keys", "the first seals ids, all open them. To rotate: add the new key second on every replica, put it first, remove the old one after `ttl`", yamlcfg.List[sealingKey]{Out: sealing, Item: (*sealingKey).schema}),
		key("ttl", "how long a reservation can be settled: longer than the longest request. Then it stays charged", yamlcfg.Duration(ttl, time.Second, day)),
	}}}
}

func (k *sealingKey) schema() yamlcfg.Schema {
	form := yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "key", Needs: []string{"file"}, Missing: "needs file, which has the key", Keys: []yamlcfg.Key{key("file", "file with the key, relative to this file; read again with the configuration", yamlcfg.Name(&k.file))}},
		Other:   yamlcfg.Name(&k.text),
	}
	return yamlcfg.Scalar{Of: *form.Shape(), Read: func(n yamlcfg.Node) {
		k.at = n.Where()
		form.Decode(n)
	}}
}

// read returns the text of a key, and false if a mistake is reported. A file with the key is among
// the sources. Messages repeat neither a key nor the name of a file, as that name may be a key by
// mistake.
func (k *sealingKey) read(in *reader, main string, report *yamlcfg.Report) (text string, sources []source, ok bool) {
	if k.file == "" {
		return k.text, nil, k.text != ""
	}
	if in.fsys == nil {
		report.Fail(k.at, "names a file, and this configuration has no files beside it: give the key itself, in base64")
		return "", []source{{err: fs.ErrNotExist}}, false
	}
	read := in.key(beside(main, k.file))
	if read.err != nil {
		report.Fail(k.at, "the key file %s", unreadable(read.err))
	}
	return strings.TrimSpace(string(read.data)), []source{read}, read.err == nil
}

// read reads the keys, and returns their files as sources.
func (r *Reservation) read(keys []sealingKey, in *reader, main string, report *yamlcfg.Report) (sources []source) {
	for _, k := range keys {
		text, read, ok := k.read(in, main, report)
		sources = append(sources, read...)
		if ok {
			r.add(text, k.at, report)
		}
	}
	if len(keys) > maxKeys {
		report.Fail(keys[maxKeys].at, "is the key number %d; there are at most %d: remove those that are older than reservation.ttl", maxKeys+1, maxKeys)
	}
	return sources
}

// add adds a key, given as text.
func (r *Reservation) add(text string, at yamlcfg.Place, report *yamlcfg.Report) {
	key, err := base64.StdEncoding.DecodeString(text)
	switch {
	case text == "":
		report.Fail(at, "is empty; a key is 32 random bytes in base64: openssl rand -base64 32")
	case err != nil:
		report.Fail(at, "is not base64; a key is 32 random bytes in base64: openssl rand -base64 32")
	case len(key) < 32 || len(key) > 64:
		report.Fail(at, "has %d bytes; a key has 32 to 64: openssl rand -base64 32", len(key))
	case slices.ContainsFunc(r.Keys, func(k []byte) bool { return string(k) == string(key) }):
		report.Fail(at, "is there twice; to change keys add another one, see the documentation of reservation.keys")
	default:
		r.Keys = append(r.Keys, key)
	}
}
