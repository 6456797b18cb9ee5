package child

// Reserve is reserve.
var Reserve = reserve
