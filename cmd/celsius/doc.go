// Command celsius is the whole product in one binary, with one file for each verb. It connects the packages, and makes no decisions itself.
package main
