/** An unambiguous yes and nothing else: any other text is a new request. */
export const isYes = (message: string): boolean =>
  /^\s*(?:yes|y|yep|yeah|confirm|confirmed|i confirm|yes,? (?:please|do it|go ahead|confirm)|do it|go ahead|please do|ja|oui|si|sí)\s*[.!]*\s*$/i.test(
    message,
  );

/** The same of a refusal. */
export const isNo = (message: string): boolean =>
  /^\s*(?:no|n|nope|cancel|no,? (?:thanks|thank you)|don['’]t|never mind|nein|non)\s*[.!]*\s*$/i.test(
    message,
  );
