package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSteadyClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		now := steadyClock()
		if got := now(); !got.Equal(before) {
			t.Errorf("starts at %v, want the time of day, %v", got, before)
		}
		time.Sleep(90 * time.Minute) // of the bubble's clock
		if got, want := now(), before.Add(90*time.Minute); !got.Equal(want) {
			t.Errorf("after 90 minutes it says %v, want %v", got, want)
		}
	})
}
