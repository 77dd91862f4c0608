import { useEffect, useState } from 'react';

/** Longer texts take longer to read than there is between two keys. */
const longestInstant = 16 * 1024;
const restMs = 250;

/** The text as it is, or of a long one what it was when nobody had typed for a moment. */
export function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  const isLong = text.length > longestInstant;
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(text), isLong ? restMs : 0);
    return () => window.clearTimeout(timer);
  }, [text, isLong]);
  return isLong ? rested : text;
}
