export type Files = Record<string, string>;
export type MemoryContainer = {
  id: string;
  name: string;
  image: string;
  labels: Record<string, string>;
  env: string[];
  command: string[];
  network: string;
  /** Path → volume. */
  mounts: Record<string, string>;
  /** What the container itself wrote. */
  files: Files;
  running: boolean;
  wasStarted: boolean;
  /** Its server ends at once, and the engine starts it again and again: which is running, as Docker says it. */
  isLooping: boolean;
  address: string;
  /** Of a database's server: who may sign in, as it knows them now. */
  users: string[];
};
