package descriptor

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestPrefixesOfAddresses(t *testing.T) {
	for _, test := range []struct{ placeholder, value, want string }{
		{"ip/64", "2001:DB8:1:2:3::4", "2001:db8:1:2::/64"},
		{"ip/64", "203.0.113.9", "203.0.113.9"},
		{"ip/64", "::ffff:203.0.113.9", "203.0.113.9"},
		{"ip/24/56", "203.0.113.9", "203.0.113.0/24"},
		{"ip/24/56", "2001:db8:1:2ff::4", "2001:db8:1:200::/56"},
		{"ip/24/56", "203.0.113.128/25", "203.0.113.0/24"},
		{"ip/24/56", "203.0.0.0/16", "203.0.0.0/16"},
		{"ip/64", "fe80::1%eth0", "fe80::/64"},
		{"ip/128", "2001:db8::0:1", "2001:db8::1"},
		{"ip/64", "unknown/64", "unknown/64"},
		{"ip/64", "", ""},
	} {
		_, bits, ok, err := cutPrefix(test.placeholder)
		if !ok || err != nil {
			t.Fatalf("%s: %t, %v", test.placeholder, ok, err)
		}
		p := part{bits: bits}
		if got := p.value([]captured{{value: test.value, present: true}}); got != test.want {
			t.Errorf("{%s} of %q is %q, want %q", test.placeholder, test.value, got, test.want)
		}
	}
	for _, bad := range []string{"ip/32", "ip/129", "ip/7/64", "ip/33/64", "ip/24/32", "ip/99999999999999999999"} {
		if _, _, ok, err := cutPrefix(bad); !ok || err == nil {
			t.Errorf("{%s} is taken: %t, %v", bad, ok, err)
		}
	}
	if _, _, ok, _ := cutPrefix("ip"); ok {
		t.Error("{ip} is cut")
	}
}

// Different blocks, or different other values, never give one name.
func TestCutAddressesStayApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"ip/{a/64}/{b}", "{a/64}:{b}", "{a/24/64}/{b}", "x{a/64}-{b}/{a/24/48}", "{b}/{a/64}", "{a/128}:{b}"}).Draw(t, "template")
		parsed, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		err = parsed.placeholders(func(p *part) error {
			name, bits, cuts, err := cutPrefix(p.text)
			if !cuts {
				name = p.text
			}
			p.capture, p.bits = int(name[0]-'a'), bits
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		address := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string {
				return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.ByteMax(2), 16, 16).Draw(t, "v6"))).String()
			}),
			rapid.Custom(func(t *rapid.T) string {
				return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.ByteMax(2), 4, 4).Draw(t, "v4"))).String()
			}),
			rapid.SampledFrom([]string{"1.0.0.0/8", "::/0", "1::/16", "", "8", "a/b", "1:2", "0.0.0.0/0", "::1%x"}),
		)
		other := rapid.OneOf(address, rapid.StringMatching(`[0-9:/%.-]{0,6}`))
		draw := func(name string) []captured {
			return []captured{{address.Draw(t, name+" a"), true}, {other.Draw(t, name+" b"), true}}
		}
		one, two := draw("one"), draw("two")
		first, _ := parsed.render(one, nil)
		second, _ := parsed.render(two, nil)
		same := one[1].value == two[1].value
		_ = parsed.placeholders(func(p *part) error {
			if p.capture == 0 {
				same = same && p.value(one) == p.value(two)
			}
			return nil
		})
		if (first == second) != same {
			t.Fatalf("%s of %v and %v is %q and %q", text, one, two, first, second)
		}
	})
}
