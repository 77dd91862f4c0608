/** A phrase that docs/style.md rules out. */
interface BannedPhrase {
  /** Has the flag `g`. */
  pattern: RegExp;
  /** What to write instead. */
  instead: string;
}

const rule = (source: string, instead: string, flags = 'gi'): BannedPhrase => ({
  pattern: new RegExp(source, flags),
  instead,
});

/** Phrases that are not plain English, or not the field's term, each with its replacement. */
const bannedPhrases: readonly BannedPhrase[] = [
  // At the beginning of a sentence, with a capital.
  rule(
    String.raw`(?<=^|[.!?] )What (?:is|are|was|were|it|they|of|comes?|came|goes|an?|the)\b(?![^.]*\?)`,
    'name the thing',
    'g',
  ),
  rule(String.raw`(?<=^|[.!?] )Whose\b(?![^.]*\?)`, 'name the owner', 'g'),
  rule(String.raw`(?<=^|[.!?] )Who (?:is|are|was|were|has|had)\b(?![^.]*\?)`, 'name the person or process', 'g'),
  rule(
    String.raw`(?<=^|[.!?] )Of (?:those|these|this|that|a|an|what|which|such|all|one|each|it|them)\b`,
    'put the subject first',
    'g',
  ),
  rule(String.raw`(?<=^|[.!?] )So (?:many|much|long|often|far)\b`, 'maximum, at most, or a unit', 'g'),
  rule(String.raw`\b(?:at most|after|for|of) so (?:many|much|long)\b`, 'the number: "at most N", "after `timeoutMs`"'),
  rule(
    String.raw`\bso (?:many|much) (?:bytes|seconds|milliseconds|times|rows|characters|lines|agents|of)\b`,
    'maximum, at most',
  ),
  rule(String.raw`\banew\b`, 'again, or re-'),
  rule(String.raw`\bby now\b`, 'already, since'),
  rule(String.raw`\bby then\b`, 'before, already'),
  rule(String.raw`(?<!there )\b(?:is|are|was|were) none(?! of)\b`, 'is not a, does not exist'),
  rule(String.raw`\bwho(?:so)?ever\b`, 'name the person or process'),
  rule(String.raw`\bwhatever\b`, 'everything, or name the things'),
  rule(String.raw`\bnobody (?:is|was|else|has|had|knows?|may|can|will|reads|sees|gets|waits)\b`, 'no one, or name who'),
  rule(String.raw`\b(?:is|are|was|were|be|been) told\b`, 'is notified, is reported, receives'),
  rule(String.raw`\b(?:has|have|had) (?:said|told)\b`, 'has sent, has reported'),
  rule(String.raw`\bput right\b`, 'repair, fix'),
  rule(String.raw`\bmend(?:s|ed|ing)?\b`, 'fix, repair'),
  rule(String.raw`\bcarr(?:y|ies|ied|ying) (?:\w+ )?out\b`, 'run, apply'),
  rule(String.raw`\bcall(?:s|ed|ing)? off\b`, 'cancel, unsubscribe'),
  rule(String.raw`\bgo(?:es)? by (?:the|its|this|that|them|it|what)\b`, 'use, follow'),
  rule(String.raw`\b(?:is|are|was|were) (?:not )?there (?:any more|already|yet|no more)\b`, 'exists'),
  rule(String.raw`\bfor good\b`, 'permanently'),
  rule(String.raw`\ball the same\b`, 'still, anyway'),
  rule(
    String.raw`(?<!there )\b(?:is|are) no (?:\w+ )?(?:file|name|number|text|module|operation|key|path|directory)\b`,
    'is not a',
  ),
  rule(String.raw`\bthat (?:is|are|was|were) none\b`, 'that is not one'),
  rule(String.raw`\bin the place of\b`, 'instead of, replaces'),
  rule(String.raw`\bcomes? to (?:an|one|two|no|more|so|\d)\b`, 'totals, amounts to'),
  rule(String.raw`\bin order to\b`, 'to'),
];

/** Every banned phrase of a text, as it stands there. */
export function bannedIn(text: string): { phrase: string; instead: string }[] {
  return bannedPhrases.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map(([phrase]) => ({ phrase, instead })),
  );
}
