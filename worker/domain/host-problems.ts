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
