// Imported when it runs, so that the bundle has a function for each module: as one function, Node needs 2 MB more to compile them.
void import("./index.ts");
