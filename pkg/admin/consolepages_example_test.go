package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

func Example() {
	page, err := admin.NewConsole()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	w := httptest.NewRecorder()
	if page.Has(r) {
		page.ServeHTTP(w, r)
	}
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
