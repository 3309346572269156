/** Links of which one is current, such as ranges of time. `keep`: further parameters of the query. */
export const Ranges = ({
  path,
  name,
  current,
  options,
  keep = {},
}: {
  path: string;
  name: string;
  current: string;
  options: readonly (readonly [value: string, label: string])[];
  keep?: Readonly<Record<string, string>>;
}) => (
  <span class="ranges">
    {options.map(([value, label]) => (
      <a
        href={`${path}?${new URLSearchParams({ ...keep, [name]: value }).toString()}`}
        {...(value === current && { "aria-current": "true" as const })}
      >
        {label}
      </a>
    ))}
  </span>
);
