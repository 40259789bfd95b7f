package dynamo

// MaxHolders is for the tests that see the package as its users do.
const MaxHolders = maxHolders
