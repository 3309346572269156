import { AppError } from "../../domain/app-error.ts";

/** What a host was asked for, or in words why it is not there, such as a host that does not answer. */
export const orWhy = async <Found>(
  asked: Promise<Found>,
): Promise<{ found: Found; why: null } | { found: null; why: string }> => {
  try {
    return { found: await asked, why: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { reason } = error.extra;
    const isMissingThere = error.code === "not_found" && reason !== undefined;
    if (error.code !== "conflict" && !isMissingThere) throw error;
    return { found: null, why: typeof reason === "string" ? reason : error.message };
  }
};
