import { tmpdir } from "node:os";

// A test names what it reads of the project relative to where it lies, by which scripts/lib/test-inputs.ts knows what the test
// depends on. A path relative to the working directory leads nowhere.
process.chdir(tmpdir());
