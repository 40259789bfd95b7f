//go:build !torture

package catalog

// manyEntities is the number of entities that DynamoDB Local lists.
const manyEntities = 1_000
