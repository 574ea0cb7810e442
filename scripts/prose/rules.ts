/** Words and openings that Berth's texts avoid, each with what to write instead. README.md has the reasons and examples. */

export interface Rule {
  name: string
  pattern: RegExp
  instead: string
}

export const RULES: Rule[] = [
  {
    name: 'clause as subject',
    pattern: /^(What|Whatever|Who|Whoever|Whichever)\b(?!.*\?)/,
    instead: 'begin with a noun: "Requests without a key get 401"',
  },
  {
    name: 'pronoun as subject',
    pattern: /^((One|Ones|Those|Others) (that|which|who|whose|with|is|has)|(Ones|Those|Others) of)\b/,
    instead: 'repeat the noun: "A pin that …"',
  },
  {
    name: 'where for if',
    pattern:
      /\b(where (there (is|are|was|were) no(ne|thing)?|nobody|none)|(undefined|null|empty|true|false) where)\b/i,
    instead: '"if"',
  },
  { name: 'also where', pattern: /\balso (where|when|while|after)\b/i, instead: '"even if", "even when"' },
  {
    name: 'status as adjective',
    pattern: /\b(is|are|was|were|be) [1-5]\d\d(?=[,.;:)]|$| (if|for|when|with|and|until|without)\b)/,
    instead: '"returns 404", "fails with 503"',
  },
  {
    name: 'is no',
    pattern:
      /(?<!\bthere )\b(is|are|was|were) (none(?! of)|no (?!longer|more|less|way|need|reason|doubt|different|other)[a-z]+)\b/i,
    instead: '"is not a …", "does not exist"',
  },
  { name: 'is there', pattern: /\b(is|are|was|were) there(?=[,.;:)]|$)/i, instead: '"exists", "is present"' },
  { name: 'has not', pattern: /\b(has|have|had) not(?=[,.;:)]|$)/, instead: '"lacks"' },
  { name: 'that of', pattern: /\b(is|are|than|has|not) (that|those) of\b/, instead: 'repeat the noun' },
  {
    name: 'nobody’s',
    pattern: /\b(nobody|anybody|somebody)['’]s\b/i,
    instead: 'name the owner, or say what happens',
  },
  { name: 'of ours', pattern: /\bof (ours|theirs|yours|others)\b/, instead: '"our", "their", "third-party"' },
  {
    name: 'but for',
    pattern: /\b(but for (?!now\b)|(nobody|nothing|none) but\b)/i,
    instead: '"except", "only"',
  },
  { name: 'goes on', pattern: /\b(go|goes|went|gone) on(?! to)\b/i, instead: '"continues", "keeps running"' },
  { name: 'tells of', pattern: /\b(tells?|told|telling) of\b/i, instead: '"reports"' },
  { name: 'as it is', pattern: /\bas (it is|they are)(?=[,.;:)]|$)/i, instead: '"unchanged"' },
  { name: 'any more', pattern: /\bany ?more\b/i, instead: '"no longer"' },
  {
    name: 'or nor',
    pattern: /(?<!\bneither\b.*)\bnor (is|are|does|do|has|can|a|an|the)\b/i,
    instead: '"and … not either"',
  },
  {
    name: 'old word',
    pattern:
      /\b(anew|beside|whoever|whichever|meanwhile|ever more|at hand|in vain|to be had|for want of|in the place of|held against|stands? still|time of grace|thereof|thereby|whereby|lest|amid|likewise|shall|mend(s|ed|ing)?)\b/i,
    instead: 'a current word: "again", "next to", "the caller", "for lack of", "instead of", "hangs", "fix"',
  },
]
