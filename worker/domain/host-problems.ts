type Condition = {
  diskFreeMb: number | null;
  diskNeededMb: number | null;
  ingressProblem: string | null;
  updateProblem: string | null;
};

const gigabytes = (mb: number): string => `${(mb / 1024).toFixed(1)} GB`;

/** For the operator: what keeps a host from its work or its agent from its update, as its agent last reported it. */
export function hostProblems({
  diskFreeMb,
  diskNeededMb,
  ingressProblem,
  updateProblem,
}: Condition): string[] {
  const isFull = diskFreeMb !== null && diskNeededMb !== null && diskFreeMb < diskNeededMb;
  return [
    ...(ingressProblem === null ? [] : [ingressProblem]),
    ...(isFull
      ? [
          `Its disk is nearly full: ${gigabytes(diskFreeMb)} are free, and a deployment needs ${gigabytes(diskNeededMb)}. Nothing new is placed on it, and its sites cannot be deployed. Remove what is not needed (docker system df shows what uses the disk) or add disk space.`,
        ]
      : []),
    ...(updateProblem === null ? [] : [updateProblem]),
  ];
}
