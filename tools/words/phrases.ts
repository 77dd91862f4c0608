import type { TextKind } from './texts.ts';

/** A phrase that docs/style.md bans. */
interface BannedPhrase {
  /** Regular expression with the flag `g`. */
  pattern: RegExp;
  /** The replacement, or advice with an example of a rewrite. */
  instead: string;
  /** The kinds of text in which the phrase is banned. Default: all. */
  kinds?: readonly TextKind[];
}

const rule = (source: string, instead: string, flags = 'gi'): BannedPhrase => ({
  pattern: new RegExp(source, flags),
  instead,
});

/** Creates a rule for some kinds of text only. */
const ruleIn = (kinds: readonly TextKind[], source: string, instead: string): BannedPhrase => ({
  ...{ pattern: new RegExp(source, 'gi'), instead, kinds },
});

const sources: readonly TextKind[] = ['comment', 'message', 'log', 'test'];

/** Phrases that are not plain English or not the field's term, each with its replacement. */
const bannedPhrases: readonly BannedPhrase[] = [
  // Matches only at the beginning of a sentence, where the word is capitalized.
  rule(
    String.raw`(?<=^|[.!?] )What (?:is|are|was|were|it|they|of|comes?|came|goes|an?|the)\b(?![^.]*\?)`,
    'name the thing: "The revision that is newest", not "What is newest"',
    'g',
  ),
  rule(
    String.raw`(?<=^|[.!?] )Whose\b(?![^.]*\?)`,
    'name the owner: "The agent’s link closed", not "Whose link closed"',
    'g',
  ),
  rule(
    String.raw`(?<=^|[.!?] )Who (?:is|are|was|were|has|had)\b(?![^.]*\?)`,
    'name the person or process: "An operator who is signed in", not "Who is signed in"',
    'g',
  ),
  rule(
    String.raw`(?<=^|[.!?] )Of (?:those|these|this|that|a|an|what|which|such|all|one|each|it|them)\b`,
    'put the subject first: "One of these files changes", not "Of these files, one changes"',
    'g',
  ),
  rule(
    String.raw`(?<=^|[.!?] )So (?:many|much|long|often|far)\b`,
    'the bound: "Maximum number of retries", not "So many retries"',
    'g',
  ),
  rule(String.raw`\b(?:at most|after|for|of) so (?:many|much|long)\b`, 'the number: "at most N", "after `timeoutMs`"'),
  rule(
    String.raw`\bso (?:many|much) (?:bytes|seconds|milliseconds|times|rows|characters|lines|agents|of)\b`,
    'the bound: "at most 5 rows", not "so many rows"',
  ),
  rule(String.raw`\banew\b`, 'again, or re-'),
  rule(String.raw`\bby now\b`, 'already, since'),
  rule(String.raw`\bby then\b`, 'before, already'),
  rule(
    String.raw`(?<!there )\b(?:is|are|was|were) none(?! of)\b`,
    'is not a, does not exist: "the link does not exist"',
  ),
  rule(String.raw`\bwho(?:so)?ever\b`, 'name the person or process: "the operator who signed in"'),
  rule(String.raw`\bwhatever\b`, 'everything, or name the things'),
  rule(String.raw`\bnobody (?:is|was|else|has|had|knows?|may|can|will|reads|sees|gets|waits)\b`, 'no one, or name who'),
  rule(String.raw`\b(?:is|are|was|were|be|been) told\b`, 'is notified, is reported, receives'),
  rule(String.raw`\b(?:has|have|had) (?:said|told)\b`, 'has sent, has reported'),
  rule(String.raw`\bput right\b`, 'repair, fix'),
  rule(String.raw`\bmend(?:s|ed|ing)?\b`, 'fix, repair'),
  ruleIn(sources, String.raw`\b(?:after|before|survives?|and|or|so) a kill\b`, 'if it is killed, after it was killed'),
  rule(String.raw`\bcarr(?:y|ies|ied|ying) (?:\w+ )?out\b`, 'run, apply'),
  rule(String.raw`\bcall(?:s|ed|ing)? off\b`, 'cancel, unsubscribe'),
  rule(String.raw`\bgo(?:es)? by (?:the|its|this|that|them|it|what)\b`, 'use, follow'),
  rule(
    String.raw`\b(?:is|are|was|were) (?:not )?there (?:any more|already|yet|no more)\b`,
    'exists: "the file exists"',
  ),
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
  rule(String.raw`\bwhat (?:was|is|stood|had been) there\b`, 'the original file, entry, or value'),
  ruleIn(
    sources,
    String.raw`\bwhat (?:is|was|are|were|has|had|it|they|must|no|comes|came|goes)\b(?! (?:it|they) (?:is|are) for)(?![^.]*\?)`,
    'name the thing: "compares the stored value", not "compares what is stored"',
  ),
  rule(String.raw`\btells? (?:every|what|where|which|why|who|how)\b`, 'reports, says: "reports which agents drift"'),
  rule(String.raw`\b(?:some|any|every)body\b`, 'someone, or name the person or process'),
  rule(String.raw`\bnobody\b`, 'no one, or name the person or process'),
  rule(String.raw`\b(?:to|from|of|by|than|for) who\b`, 'name the person or process: "the operator who signed in"'),
  rule(
    String.raw`\b(?:stands?|stood) (?:in|beside|somewhere|before|at|there|with|above|below|between|behind)\b`,
    'is in, occurs in, is next to: "the rule is in the table"',
  ),
  rule(
    String.raw`(?<!\b(?:is|are) )\b(?:is|are|was|were|not) there\b(?! (?:is|are|was|were|a|an|no)\b)`,
    'exists, is present: "the file exists"',
  ),
  rule(String.raw`\bwhere there (?:is|are|was)\b`, 'if there is'),
  rule(String.raw`\b(?:goes|went|go|gone) away\b|\b(?:is|are|was|were) gone\b`, 'is removed, disappears, is deleted'),
  rule(String.raw`\b(?:goes|go|going|went) on\b|\blooks? on\b`, 'continues; watches'),
  rule(String.raw`\bfrom (?:there|then) on\b`, 'after that'),
  rule(String.raw`\b(?:brought|brings?|comes?|came) back\b`, 'restores, returns, reconnects'),
  ruleIn(sources, String.raw`\b(?:is|are|was|were|been|be) made\b`, 'is created, is built'),
  rule(String.raw`\bmeanwhile(?=[.,;:]|$)`, 'in the meantime, or nothing'),
  rule(String.raw`\b(?:is|are|was|were|be) asked\b`, 'is requested, is queried'),
  rule(String.raw`\b(?:the|a|another) person\b`, 'the user, the operator'),
  rule(String.raw`\bbeside\b`, 'next to, with'),
  rule(String.raw`\bon record\b`, 'recorded'),
  rule(String.raw`\bdeviat\w*`, 'drift, differ'),
  rule(String.raw`\bnothing but\b|\bbut what\b`, 'only'),
  rule(String.raw`\bfar end\b`, 'receiver, peer'),
  rule(String.raw`\bcounts? up\b`, 'counter'),
  rule(String.raw`\bunseen for\b`, 'least recently seen'),
  rule(
    String.raw`\b(?:is|are) no more\b(?! than)|\bin there\b`,
    'has ended, no longer exists; name the place: "in the journal", not "in there"',
  ),
  rule(
    String.raw`\bends? so\b|\bbegins? so\b|\b(?:named|called) so\b`,
    'name the ending: "ends with `.ts`", not "ends so"',
  ),
  ruleIn(
    sources,
    String.raw`(?<!\x60|@param |=)\bcancell(?:ed|ing)\b(?!\x60|[\w(:])`,
    'canceled, canceling; names on the wire keep their spelling',
  ),
  ruleIn(
    sources,
    String.raw`\b(?:declare|install|apply)\b[^.;]* before$`,
    'first, or "before this resource": "declare the package before this resource"',
  ),
  ruleIn(
    sources,
    String.raw`\bwhen \w+(?: \w+){0,3} (?:has|have) last\b`,
    'the past tense: "when the process last heard from its agents"',
  ),
  ruleIn(sources, String.raw`\bthis Muster\b(?! release)`, 'this release of Muster'),
  ruleIn(sources, String.raw`\b(?:do|does) not exist anymore\b`, 'no longer exists'),
  ruleIn(
    sources,
    String.raw`\b(?:process|replica)\b[^.;]{0,30}\bhas (?:it|(?:its|the|a|this) (?:terminal session|link|lock))\b`,
    'holds: "the replica that holds the link"',
  ),
  ruleIn(
    sources,
    String.raw`\bat (?:another|the other|other|each|two|both) replicas?\b`,
    'on: "a session that ended on the other replica"',
  ),
  ruleIn(sources, String.raw`\b(?:after|by) a killed \w+$`, 'after the agent was killed'),
  ruleIn(
    sources,
    String.raw`\ba content\b(?! (?:cache|encoding|frame|hash|length|type))`,
    'content: "refuses content with a different hash"',
  ),
  ruleIn(['comment'], '^Numbers of ', 'the kind of number: "Sequence numbers of", "Counts of"'),
  ruleIn(
    ['comment'],
    String.raw`^(?:Reports|Returns) whether [^.]*, so that (?:it|they)\b`,
    'two sentences: "Reports whether the unit exits. Such a unit need not keep running."',
  ),
  ruleIn(
    ['message'],
    '^[A-Z][a-z]+ [^;.]*; (?:exits|prints|reads|asks|shows|waits|writes|opens|stops) ',
    'two imperatives: "Follow a run, and exit with its exit code"',
  ),
  ruleIn(['comment'], '^(?:It|They) ', 'name the subject: "The agent retries", not "It retries"'),
  ruleIn(
    ['comment'],
    '^(?:Not|Also|Even|Nor|One|Those|Nothing) ',
    'put the subject first: "The agent does not retry", not "Not retried"',
  ),
  ruleIn(
    ['test'],
    String.raw`^(?:is|are|was|were|has|have|had|can|cannot|of|do)\b`,
    'the expected behavior, as a sentence without its subject: "refuses a used token"',
  ),
  ruleIn(
    ['test'],
    String.raw`^(?:what(?:ever)?|who(?:ever|se)?|where|why|which)\b`,
    'the expected behavior: "refuses a used token"',
  ),
  ruleIn(['test'], String.raw`^(?:%[a-z]|\$[\w.]+)$`, 'the expected behavior: "accepts $name"'),
  ruleIn(['test'], '^[^"]*"(?:[^"]*"[^"]*")*[^"]*$', 'pairs of quotes: \'refuses "a"\''),
];

/** Returns every banned phrase in a text, as written. */
export function bannedIn(text: string, kind: TextKind): { phrase: string; instead: string }[] {
  return bannedPhrases
    .filter(({ kinds }) => kinds?.includes(kind) ?? true)
    .flatMap(({ pattern, instead }) => [...text.matchAll(pattern)].map(([phrase]) => ({ phrase, instead })));
}
