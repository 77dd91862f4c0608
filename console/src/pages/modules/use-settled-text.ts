import { useEffect, useState } from 'react';

/**
 * Maximum length in characters of text to process on every keystroke. Parsing longer text would delay the next
 * keystroke.
 */
const maxInstantLength = 16 * 1024;
const settleMs = 250;

/** Returns the text. If it is long, returns its value at the last pause in typing. */
export function useSettledText(text: string): string {
  const [settled, setSettled] = useState(text);
  const isLong = text.length > maxInstantLength;
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), isLong ? settleMs : 0);
    return () => window.clearTimeout(timer);
  }, [text, isLong]);
  return isLong ? settled : text;
}
