/**
 * The code with which an app exited that its restart policy does not start again, as its host says; null: the error
 * is about something else.
 */
export function policyExitCode(error: string): number | null {
  const found = /^The app exited with code (\d+), and its restart policy /.exec(error);
  return found && Number(found[1]);
}
