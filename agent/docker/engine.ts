export type Engine = { placeholder: true };
