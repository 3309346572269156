import { inPlans } from "../../domain/plan-words.ts";

/** Settings as the API and hosts name them, and as the dashboard's fields are labelled. */
const labels: Readonly<Record<string, string>> = {
  githubUrl: "Repository",
  gitToken: "Access token",
  rootDir: "Folder of the app",
  registryUsername: "Username at the registry",
  registryPassword: "Password or token",
  dockerfilePath: "Dockerfile path",
  languageVersion: "Language version",
  installCommand: "Install command",
  buildCommand: "Build command",
  outputDir: "Folder to serve as a static site",
  singlePage: "Serve index.html for unknown paths",
  startCommand: "Start command",
  releaseCommand: "Release command",
  startTimeoutSeconds: "Seconds a new version may take to answer",
  healthCheckPath: "Health check path",
  restartPolicy: "Start again when it exits",
  stopSignal: "Stop signal",
  stopTimeoutSeconds: "Seconds to stop after the stop signal",
  drainSeconds: "Seconds for running requests of a replaced version",
  maxBodyMb: "Largest upload",
  basicAuth: "Password protection",
  redirects: "Redirects",
  rewrites: "Rewrites",
  headers: "Headers of every response",
  allow: "Addresses",
};

/** A text of the API or a host, in the dashboard's words: its labels of settings, and plans instead of packs. */
export const inLabels = (text: string): string =>
  inPlans(text).replaceAll(/\b[a-z]+[A-Z]\w*/g, (name) =>
    Object.hasOwn(labels, name) ? `“${labels[name]}”` : name,
  );

/** The field at `settings.ingress.redirects.0.from`, as people find it on the page. */
function labelOf(path: string): string {
  const names = path.split(".").filter((part) => !/^\d+$/.test(part));
  const known = names.find((name) => Object.hasOwn(labels, name));
  if (known !== undefined) return labels[known] ?? known;
  const words = (names.at(-1) ?? path).replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.replace(/^./, (letter) => letter.toUpperCase());
}

/** Some messages are whole sentences; the others are about the field that is named before them. */
export const sentenceOf = ({ path, message }: { path: string; message: string }): string => {
  const isWhole = path === "" || /^[A-Z]/.test(message);
  return `${isWhole ? "" : `${labelOf(path)}: `}${message}`.replace(/[.]?$/, ".");
};
