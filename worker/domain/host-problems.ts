type Condition = {
  id: string;
  memoryMb: number | null;
  memoryLimitMb: number | null;
  memoryKnownMb: number | null;
  diskFreeMb: number | null;
  diskNeededMb: number | null;
  ingressProblem: string | null;
  updateProblem: string | null;
  machineProblems: readonly string[];
  otherAgentFrom: string | null;
};

/** An update of the kernel changes what a machine reports by less. */
const growthShare = 1.05;

const gigabytes = (mb: number): string => `${(mb / 1024).toFixed(1)} GB`;

/** For the operator: what keeps a host from its work, its memory from use or its agent from its update, or what is wrong with its clock or old on it, as its agent last reported it. */
export function hostProblems({
  id,
  memoryMb,
  memoryLimitMb: limitMb,
  memoryKnownMb: knownMb,
  diskFreeMb,
  diskNeededMb,
  ingressProblem,
  updateProblem,
  machineProblems,
  otherAgentFrom,
}: Condition): string[] {
  const isFull = diskFreeMb !== null && diskNeededMb !== null && diskFreeMb < diskNeededMb;
  const hasGrown =
    memoryMb !== null && limitMb !== null && memoryMb > Math.max(limitMb, (knownMb ?? 0) * growthShare);
  return [
    ...(hasGrown
      ? [
          `Its agent reports ${memoryMb} MB of memory; ${limitMb} MB are used until an operator accepts more, because a host in other hands could attract all new sites. If the machine has them, accept them on the page of hosts or by: berth hosts set ${id} memoryMb=${memoryMb}. If not, somebody else may have the host's token: remove the host.`,
        ]
      : []),
    ...(otherAgentFrom === null
      ? []
      : [
          `Another agent tries to connect with this host's token${otherAgentFrom && ` from ${otherAgentFrom}`}, and is refused because this host's was connected first. Perhaps its machine is a copy of this one, or the installer was run there with the same token: stop it there (systemctl disable --now berth-agent) and give that machine a host of its own. If it is to be this host from now on, stop the agent here first, then restart it there. If you know of no such machine, somebody else has the token: remove the host.`,
        ]),
    ...(ingressProblem === null ? [] : [ingressProblem]),
    ...(isFull
      ? [
          `Its disk is nearly full: ${gigabytes(diskFreeMb)} are free, and a deployment needs ${gigabytes(diskNeededMb)}. Nothing new is placed on it, and its sites cannot be deployed. Remove what is not needed (docker system df shows what uses the disk) or add disk space.`,
        ]
      : []),
    ...(updateProblem === null ? [] : [updateProblem]),
    ...machineProblems,
  ];
}
