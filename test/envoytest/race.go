//go:build race

package envoytest

// raceDetector says that the tests run with the race detector.
const raceDetector = true
