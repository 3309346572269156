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
  /** The container's writable layer. */
  files: Files;
  running: boolean;
  wasStarted: boolean;
  /** Its server ends at once, and the engine restarts it repeatedly, which Docker reports as running. */
  isLooping: boolean;
  address: string;
  /** For a database's server: the users that it knows now. */
  users: string[];
};
