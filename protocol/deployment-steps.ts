/** What a deployment goes through on its host, in order. */
export const deploymentSteps = ["clone", "build", "start", "swap"] as const;
export type DeploymentStep = (typeof deploymentSteps)[number];

export const stepNames: Readonly<Record<DeploymentStep, string>> = {
  clone: "Fetch the source",
  build: "Build",
  start: "Start and check",
  swap: "Switch visitors over",
};
