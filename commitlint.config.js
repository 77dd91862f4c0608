/*
 * The subject of a commit is `area: imperative` of at most 72 characters; the body says why, and how it was verified. The area is
 * a folder or a noun: `agent/metrics`, `console, cli`.
 */

// Allowed first words of a subject. Add a verb if it is missing.
const verbs =
  `accept acknowledge add adjust admit align allow anchor announce answer apply ask attack avoid back begin bind block bound break build
bump bundle cache call cancel cap capitalize change check clarify clean close collect compare complete compress configure convert copy correct
count cover create cut date decide declare deduplicate define delete deny deprecate describe detect disable discard divide do document download draw drop
enable encode encrypt end enforce ensure escape exit expect explain export expose extend extract fail fetch fill filter find fix
flush follow format free generate give group guard handle hide highlight hold honor ignore implement import improve include index inline
insert install introduce isolate join journal judge keep leave let lift limit link lint list load lock log look lower make map mark match
measure merge migrate mount move mute name narrow normalize note notify observe open order parse pass pin plan play poll post
prefer prepare press prevent print probe protect prove publish purge put quarantine quote raise read rebuild receive recognize reconnect record redact redirect
reduce refer refuse regenerate register reject release reload rely remount remove rename render renew reorder repair repeat replace report request require
reset resolve respect restart restore restrict retry return reuse revert revoke reword rewrite rework roll rotate rule run sample save say scope send
separate serve set share shorten show sign simplify size skip sort speed spell split stage start state stop store stream strip
suggest support switch sync take tell test throttle tie tighten time track transfer treat trim try turn type unify unpack update upgrade use
validate verify wait warn widen wire word wrap write`.split(/\s+/);

export default {
  parserPreset: {
    parserOpts: {
      headerPattern: /^([a-z0-9][\w./, -]*): (.+)$/,
      headerCorrespondence: ['type', 'subject'],
    },
  },
  plugins: [
    {
      rules: {
        'subject-imperative': ({ subject }) => [
          verbs.includes(subject?.split(' ')[0] ?? ''),
          'the subject begins with a verb in the imperative, in lower case, such as add, fix, or remove',
        ],
        // The parser returns a body of one paragraph that begins with "Verified:" as a footer.
        'body-present': ({ body, footer }) => [Boolean(body || footer), 'the body says why, and how it was verified'],
      },
    },
  ],
  rules: {
    'type-empty': [2, 'never'],
    'subject-empty': [2, 'never'],
    'subject-full-stop': [2, 'never', '.'],
    'subject-imperative': [2, 'always'],
    'header-max-length': [2, 'always', 72],
    'header-trim': [2, 'always'],
    'body-present': [2, 'always'],
    'body-leading-blank': [2, 'always'],
  },
};
