import { tryGetContext } from "hono/context-storage";
import type { AppEnv } from "../../app-env.ts";
import { Copy } from "./parts.tsx";

export const Said = () => {
  const flash = tryGetContext<AppEnv>()?.get("flash");
  if (!flash) return null;
  return (
    <div
      class={`callout flash ${flash.tone}`}
      role={flash.tone === "good" ? "status" : "alert"}
      tabindex={-1}
      data-flash
    >
      <p>{flash.text}</p>
      {flash.secret !== undefined && (
        <>
          <code class="secret">{flash.secret}</code>
          <Copy text={flash.secret} label="Copy" />
        </>
      )}
    </div>
  );
};
