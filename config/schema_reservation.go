package config

import (
	"encoding/base64"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Reservation says how the ids of reservations are made.
type Reservation struct {
	// Keys are at most maxKeys keys of 32 to 64 bytes. The first one makes ids, and ids of all keys
	// are accepted. None = a key in the store, which every replica reads.
	Keys [][]byte
	TTL  time.Duration // how long a reservation can be settled, 1s to 24h; default 10m
}

const maxKeys = 8

// reservation is the section in the form of the file.
type reservation struct {
	ttl  *time.Duration
	keys []sealingKey
}

// sealingKey is a key in the form of the file: its text, or the name of a file with the text.
type sealingKey struct {
	text string
	file string
	at   place
}

func (r *reservation) schema() schema {
	return confidential{object{title: "reservation", keys: []key{
		{"keys", list[sealingKey]{out: &r.keys, item: func(k *sealingKey) schema { return sealingKeySchema{k} }}},
		{"ttl", duration(r.ttl, time.Second, day)},
	}}}
}

type sealingKeySchema struct{ out *sealingKey }

func (s sealingKeySchema) decode(d *decoder, v value) {
	s.out.at = d.at(v)
	if v.node.Kind == yaml.MappingNode {
		before := d.failures()
		s.object().decode(d, v)
		if s.out.file == "" && d.failures() == before {
			d.failf(v, "needs file, which has the key")
		}
		return
	}
	name(&s.out.text).decode(d, v)
}

func (s sealingKeySchema) object() object {
	return object{title: "key", keys: []key{{"file", name(&s.out.file)}}}
}

func (s sealingKeySchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

// read reads the files with keys, relative to the configuration, and returns them as sources.
// Messages repeat neither a key nor the name of a file, as that name may be a key by mistake.
func (r *reservation) read(in *reader, main string, out *Reservation, report *report) []source {
	var sources []source
	for _, s := range r.keys {
		text, read := s.read(in, main, report)
		sources = append(sources, read...)
		if len(read) > 0 && read[0].err != nil {
			continue
		}
		if text != "" || s.file != "" { // otherwise it is reported
			out.add(text, s.at, report)
		}
	}
	if len(r.keys) > maxKeys {
		report.fail(r.keys[maxKeys].at, "is the key number %d; there are at most %d: remove those that are older than reservation.ttl", maxKeys+1, maxKeys)
	}
	return sources
}

// read returns the text of a key. A file with the key it returns as a source, and reports it if it
// cannot be read.
func (s *sealingKey) read(in *reader, main string, report *report) (text string, sources []source) {
	if s.file == "" {
		return s.text, nil
	}
	if in.fsys == nil {
		report.fail(s.at, "names a file, and this configuration has no files beside it: give the key itself, in base64")
		return "", []source{{err: fs.ErrNotExist}}
	}
	file := s.file
	if !filepath.IsAbs(file) {
		file = path.Join(path.Dir(main), filepath.ToSlash(file))
	}
	read := in.key(file)
	if read.err != nil {
		report.fail(s.at, "the key file %s", unreadable(read.err))
	}
	return strings.TrimSpace(string(read.data)), []source{read}
}

// add adds a key, given as text.
func (r *Reservation) add(text string, at place, report *report) {
	key, err := base64.StdEncoding.DecodeString(text)
	switch {
	case text == "":
		report.fail(at, "is empty; a key is 32 random bytes in base64: openssl rand -base64 32")
	case err != nil:
		report.fail(at, "is not base64; a key is 32 random bytes in base64: openssl rand -base64 32")
	case len(key) < 32 || len(key) > 64:
		report.fail(at, "has %d bytes; a key has 32 to 64: openssl rand -base64 32", len(key))
	case slices.ContainsFunc(r.Keys, func(k []byte) bool { return string(k) == string(key) }):
		report.fail(at, "is there twice; to change keys add another one, see the documentation of reservation.keys")
	default:
		r.Keys = append(r.Keys, key)
	}
}
