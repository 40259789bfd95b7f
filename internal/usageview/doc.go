// Package usageview shows usage to people and to spreadsheets: as rows with bars, and as CSV.
package usageview
