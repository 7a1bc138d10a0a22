"""Sentences of word problems: lists of forms, filled with names and numbers by `docs_math`.

A form that begins with `~` is held out: it is in held-out problems alone. One that begins with `+` is in the
second stage of the training corpus, not in the first; of its parts in brackets one alternative is taken.
These were written later, with the held-out forms in view: none of them says what a held-out one says in its
words.
"""

START = ["{n} has {a} {ts}.", "{n} had {a} {ts}.", "At first {n} has {a} {ts}.", "{n} owns {a} {ts}.", "{n} starts with {a} {ts}.", "{n} collected {a} {ts}.", "{n} bought {a} {ts} in {month}.",
         "In the {place} {n} keeps {a} {ts}.", "{n} brought {a} {ts} to the {place}.", "There are {a} {ts} on {n}'s table.",
  "+{n} [has|had|owns|keeps|holds|bought|gathered|received|ordered|picked|won] {a} {ts}.", "+[On Monday|Yesterday|This morning|Last week|At the beginning|Before lunch] {n} [had|owned|bought|counted|saw] {a} {ts}.", "+There [are|were] {a} {ts} in {n}'s [room|{g}|house|garden|car].", "+{n}'s {g} [has|holds|had] {a} {ts} in it.", "+{a} {ts} [are|lie|were] in the {g} of {n}.", "+{n}, who [works in|visits|lives by] the {place}, has {a} {ts}.", "+{n} and {m} are [friends|cousins|neighbors]. {n} has {a} {ts}.", "+{n} [likes|loves|collects] {ts} and has {a} of them.",
  "~{n} found {a} {ts} near the {place}.", "~{n} got {a} {ts} for a birthday.", "~In {month} {n} had {a} {ts}."]
OWNS = START[:5] + ["~{n} got {a} {ts} for a birthday."]
GAIN = ["{m} gives {n} {b} more {ts}.", "{n} buys {b} more {ts}.", "{n} finds {b} more {ts}.", "{n} gets {b} {ts} from {m}.", "Then {n} receives {b} more {ts}.", "{n} wins {b} {ts} in a game.", "{m} brings {n} {b} more.",
        "{n} picks up {b} {ts} on the way home.", "Later {n} adds {b} {ts}.", "A friend gives {n} another {b} {ts}.",
  "+[Then |Later |After that |The next day |In the evening |]{n} [buys|finds|gets|picks|collects|gathers|receives|orders|wins|borrows|discovers|catches] {b} [more|other|new|additional] {ts}.", "+{m} [sends|gives|buys|brings|offers|sells|mails] {n} {b} [more|new|other|additional] {ts}.", "+{n}'s [mother|father|brother|sister|uncle|aunt|teacher|neighbor] [gives|buys|sends|brings] {n} {b} [more |new |]{ts}.", "+{b} [more|other|new] {ts} [are added|arrive|come|are bought|are delivered|join them].", "+{n} [gets|buys|finds|receives|wins] another {b}.", "+{n} adds {b} more to [them|these|the others].", "+[Then|Later|Today] {m} comes and [brings|gives|leaves] {b} {ts}[ for {n}| there|].",
  "~{n} is given {b} {ts} as a present.", "~{n} makes another {b} {ts}.", "~{m} hands {n} {b} extra {ts}."]
LOSE = ["{n} gives {b} {ts} to {m}.", "{n} gives {m} {b} of them.", "{n} loses {b} {ts}.", "{n} sells {b} of them.", "{n} breaks {b} of the {ts}.", "{m} takes {b} {ts} away.", "{b} of the {ts} are stolen.",
        "{n} throws {b} {ts} away.", "Then {n} uses {b} of the {ts}.", "Later {n} gives away {b} {ts}.",
  "+[Then |Later |After that |The next day |In the evening |]{n} [gives away|sells|loses|uses|drops|breaks|mails|throws out|gives up|returns|forgets] {b} [of them|of the {ts}|{ts}].", "+{m} [takes|buys|borrows|steals|breaks|loses] {b} [of them|of the {ts}|of these].", "+{n}'s [mother|father|brother|sister|uncle|aunt|teacher|neighbor] [takes|borrows|needs|uses] {b} of [them|the {ts}].", "+{b} of [them|the {ts}|these] [break|are sold|are broken|fall down|are given away|disappear|are used|are taken].", "+{n} [sends|gives|sells|mails|leaves] {b} of the {ts} to [{m}|a friend|a neighbor|the teacher|a cousin].", "+{n} has to [give|bring|send] {b} of them back.", "+[But|Sadly|Then] {b} {ts} [fall into the water|are missing|do not work|are too old].",
  "~{n} lends {b} of them to {m}.", "~{b} of the {ts} get lost.", "~{n} donates {b} {ts} to the school."]
NOW = ["How many {ts} does {n} have now?", "How many {ts} does {n} have in the end?", "How many {ts} does {n} have after that?", "What is the number of {ts} that {n} has now?", "How many {ts} are there now?",

  "+How many {ts} does {n} [have|own|hold] [now|then|afterwards|at the end|after this|today|altogether]?", "+[Count|Tell|Say] how many {ts} {n} has [now|in the end|afterwards].", "+So how many {ts} [are there|does {n} have|is that]?", "+How many {ts} is that [now|for {n}|altogether|in the end]?",
  "~Find the number of {ts} {n} has then.", "~Now how many {ts} does {n} own?"]
LEFT = ["How many {ts} are left?", "How many {ts} does {n} have left?", "How many {ts} remain?", "How many {ts} does {n} still have?", "How many {ts} does {n} have now?",
  "+How many {ts} [stay|remain|are left|are still] with {n}?", "+How many of them [remain|are left|does {n} still have|does {n} keep]?", "+So how many {ts} [are left|remain|does {n} keep]?", "+How many {ts} does {n} [keep|still own|have after that|have then]?", "+[Tell|Say|Count] how many {ts} [remain|are left].",
  "~What number of {ts} is left over?", "~How many of the {ts} are still there?"]
BOTH = ["{n} has {a} {ts} and {m} has {b} {ts}.", "{n} has {a} {ts}. {m} has {b} {ts}.", "{n} collects {a} {ts} and {m} collects {b}.", "There are {a} {ts} in the {place} and {b} {ts} in the kitchen.", "{n} sold {a} {ts} in {month} and {b} {ts} in the next month.",
        "{n} bought {a} {ts} on Monday and {b} {ts} on Friday.", "{n} found {a} {ts}, and {m} found {b}.",
  "+{n} [has|owns|bought|found|made|sold|collected|picked|saw|brought] {a} {ts} and {m} [has|owns|bought|found|made|sold|collected|picked|saw|brought] {b} {ts}.", "+There are {a} [red|old|big|round|green] {ts} and {b} [blue|new|small|square|white] {ts} [in the {g}|on the table|in the {place}].", "+{n} [bought|found|saw|sold|made] {a} {ts} [on Tuesday|in May|at first|before lunch|last week] and {b} [more on Thursday|{ts} in June|{ts} after that|more after lunch|{ts} this week].", "+One {g} has {a} {ts}. Another [one|{g}] has {b}.", "+{n} has {a} {ts} in one {g} and {b} {ts} in another.", "+{n} and {m} collect {ts}. {n} has {a} of them, {m} [has |]{b}.", "+[Here|On the table|In the house] are {a} {ts}, [there|on the floor|in the garden] are {b}.",
  "~{a} {ts} belong to {n} and {b} to {m}.", "~{n} counted {a} {ts} in the morning and {b} {ts} in the evening.", "~{m} carries {b} {ts} and {n} carries {a}."]
TOTAL = ["How many {ts} are there in total?", "How many {ts} is that altogether?", "How many {ts} are there in all?", "How many {ts} do they have together?", "What is the total number of {ts}?", "How many {ts} are there altogether?",

  "+How many {ts} [are there|is that|were there|are these] [in total|altogether|in all|together|in sum]?", "+What is the [sum|total|number] of all {ts}?", "+[Count|Add up] all the {ts}.", "+So how many {ts} are there?", "+[Tell|Say] how many {ts} there are in all.",
  "~Together, how many {ts} is that?", "~How many {ts} were counted overall?"]
MORE = ["{m} has {b} more {ts} than {n}.", "{m} has {b} {ts} more than {n} has.", "{n} has {b} {ts} less than {m}.", "{m} owns {b} more {ts} than {n} does.",
  "+{m} [has|owns|keeps|bought|found] {b} [more than|more {ts} than] {n}.", "+{n} [has|owns|keeps|found] {b} [less|{ts} less|fewer|fewer {ts}] than {m}.", "+{m}'s {g} has {b} {ts} more than the one of {n}.", "+{m} has [the same number|just as many], and {b} [on top|besides|more].", "+If {m} lost {b} {ts}, {m} would have as many as {n}.",
  "~{m} has as many {ts} as {n} and {b} more.", "~Compared with {n}, {m} has {b} more {ts}."]
FEWER = ["{m} has {b} fewer {ts} than {n}.", "{m} has {b} {ts} fewer than {n} has.", "{n} has {b} more {ts} than {m}.", "{m} owns {b} fewer {ts} than {n} does.",
  "+{m} [has|owns|keeps|bought|found] {b} [fewer than|fewer {ts} than|less than] {n}.", "+{n} [has|owns|keeps|found] {b} [more|{ts} more] than {m}.", "+{m}'s {g} has {b} {ts} fewer than the one of {n}.", "+{m} has [the same number|just as many] without {b}.", "+If {m} got {b} {ts}, {m} would have as many as {n}.",
  "~{m} is {b} {ts} short of what {n} has.", "~Compared with {n}, {m} has {b} fewer {ts}."]
TWICE = ["{m} has twice as many {ts} as {n}.", "{m} has 2 times as many {ts} as {n}.", "{m} owns double the number of {ts}.", "{m} has twice that many {ts}.",
  "+{m} [has|owns|keeps|found|bought] [twice as many|2 times as many|double that number|twice as many {ts}].", "+{n} has half of what {m} has.", "+{m} has as many {ts} as two people like {n}.", "+For each of these {ts}, {m} has 2.",
  "~{m} has two times the {ts} that {n} has.", "~The {ts} of {m} are twice as many."]
TIMES = ["{m} has {w} times as many {ts} as {n}.", "{m} has {b} times as many {ts}.", "{m} owns {w} times that number of {ts}.", "The number of {ts} that {m} has is {b} times as large.",
  "+{m} [has|owns|keeps|found|bought] {w} times [as many|as many {ts}|that many].", "+{m} [has|owns|keeps] {b} times as many {ts} as {n}.", "+For each of these {ts}, {m} has {b}.", "+{m} has as many {ts} as {w} people like {n}.", "+{m}'s {ts} are {w} times as many.",
  "~{m} has {b} times the {ts} that {n} has.", "~{m} has {n}'s number of {ts}, {b} times."]
HALF = ["{m} has half as many {ts} as {n}.", "{m} has half that many {ts}.", "{m} owns half the number of {ts}.",
  "+{m} [has|owns|keeps|found|bought] [half as many|half as many {ts}|half that number|half of these].", "+{n} has twice as many {ts} as {m}.", "+{n} has 2 times as many as {m}.", "+For every 2 of these {ts}, {m} has one.",
  "~{m} has only half of that number.", "~{m} has one half of what {n} has."]
OTHER = ["How many {ts} does {m} have?", "How many {ts} does {m} own?", "What is the number of {ts} that {m} has?", "Then how many {ts} does {m} have?",
  "+How many {ts} [does {m} have|does {m} own|does {m} keep|are {m}'s] [then|altogether|now|in all]?", "+So how many {ts} does {m} have?", "+[Tell|Say|Count] how many {ts} {m} has.", "+How many is that for {m}?",
  "~How many {ts} belong to {m}?"]
DIFFER = ["How many more {ts} does {n} have than {m}?", "What is the difference?", "How many fewer {ts} does {m} have than {n}?", "How many {ts} does {m} need to have as many as {n}?",
  "+How many [{ts} more|more of them] does {n} have than {m}?", "+How many [{ts} |]does {m} lack to have as many as {n}?", "+What is the difference between [them|the two|{n} and {m}]?", "+How many {ts} less does {m} have than {n}?",
  "~By how many {ts} does {n} have more?"]
GROUPS = ["There are {a} {gs} with {b} {ts} in each {g}.", "{n} has {a} {gs} of {ts}. Each {g} holds {b} {ts}.", "{n} fills {a} {gs} with {b} {ts} each.", "{n} has {a} {gs}. There are {b} {ts} in each of them.", "Each {g} has {b} {ts}, and {n} has {a} {gs}.",
          "A {g} holds {b} {ts}. {n} buys {a} {gs}.", "{n} puts {b} {ts} into each of {a} {gs}.",
  "+{n} [has|owns|buys|sees|finds|orders] {a} {gs} with {b} {ts} [each|in each|in every one].", "+[There are|Here are|The {place} has] {a} {gs}. [Each|Every {g}|Each one] [has|holds|contains] {b} {ts}.", "+{n} [has|owns|gets] {a} {gs} of {b} {ts} each.", "+{a} {gs} [have|hold|contain] {b} {ts} each.", "+There are {b} {ts} in [a|one|each] {g}. {n} [has|buys|fills|empties] {a} {gs}.", "+{n} puts {ts} into {a} {gs}, {b} into each.", "+{n} makes {a} rows of {b} {ts}.",
  "~{n} packs {a} {gs}, {b} {ts} to a {g}.", "~In every {g} are {b} {ts}; {n} owns {a} {gs}.", "~{n} carries {a} {gs}, and every one has {b} {ts}."]
PRICE = ["{n} buys {a} {ts} for ${b} each.", "{n} buys {a} {ts}. Each {t} costs ${b}.", "A {t} costs ${b}. {n} buys {a} of them.", "One {t} is ${b}, and {n} takes {a} {ts}.", "{n} orders {a} {ts} at ${b} each.", "The price of a {t} is ${b}. {n} wants {a} {ts}.",

  "+{n} [buys|orders|gets|wants|needs] {a} {ts} [at|for] ${b} [each|apiece].", "+[Each|One|A] {t} [costs|is] ${b}. {n} [buys|orders|needs|wants] {a}[ of them| {ts}|].", "+{ts} cost ${b} [each|apiece], and {n} [buys|needs|wants] {a}.", "+The [shop|market|store] sells {ts} for ${b} each. {n} [buys|gets|orders] {a}.", "+{n} buys {a} {ts}, each [for|at] ${b}.",
  "~{n} pays ${b} for every {t} and takes {a}.", "~At ${b} a {t}, {n} chooses {a} {ts}."]
COST = ["How much does {n} pay?", "How much does {n} spend?", "What is the total cost?", "How many dollars does {n} pay in total?", "How much do the {ts} cost?",
  "+How much [does {n} spend|does {n} pay|is that|must {n} pay] [in all|in total|altogether|for that]?", "+How many dollars [is that|does {n} spend|does {n} need|do they cost]?", "+What is the [price|cost] of all [{ts}|of them]?", "+So how much [is it|does {n} pay]?",
  "~What does {n} have to pay?", "~How much money is that?"]
RATE = ["{n} {does} {a} {us} a {per}.", "{n} {does} {a} {us} every {per}.", "Every {per} {n} {does} {a} {us}.", "In one {per} {n} {does} {a} {us}.", "{n} {does} {a} {us} each {per}.",
  "+{n} [can {do}|always {does}|usually {does}] {a} {us} [a|in a|each|every] {per}.", "+In [a|one|each|every] {per} {n} [{does}|can {do}] {a} {us}.", "+Every {per}, {a} {us} are what {n} {does}.", "+{n} needs a {per} to {do} {a} {us}.", "+{n} likes to {do} {a} {us} a {per}.",
  "~{n} {does} {a} {us} per {per}.", "~It takes {n} one {per} for {a} {us}."]
WHILE = ["How many {us} does {n} {do} in {b} {pers}?", "How many {us} is that in {b} {pers}?", "In {b} {pers}, how many {us} does {n} {do}?", "How many {us} does {n} {do} after {b} {pers}?",
  "+How many {us} [does {n} {do}|can {n} {do}|is that] [in|within|during] {b} {pers}?", "+[After|In|Within] {b} {pers}, how many {us} is that?", "+[Count|Tell|Say] the {us} of {b} {pers}.", "+How many {us} will it be in {b} {pers}?",
  "~What is the number of {us} for {b} {pers}?", "~{n} goes on for {b} {pers}. How many {us} is that?"]
SHARE = ["{n} shares {a} {ts} equally among {b} friends.", "{n} divides {a} {ts} equally between {b} children.", "{n} gives {a} {ts} to {b} friends, the same number to each.", "{b} friends share {a} {ts} equally.", "{n} wants to share {a} {ts} between {b} friends.",
         "{a} {ts} are put into {b} equal groups.",
  "+{n} [shares|divides|gives out] {a} {ts} equally [among|between|to] {b} [friends|children|neighbors|cousins|people].", "+{b} [children|friends|cousins|neighbors|boys|girls] [share|divide|get] {a} {ts}, the same number for each.", "+{a} {ts} are [shared|divided] [equally|fairly] [among|between] {b} [friends|children|groups|boys].", "+{n} makes {b} equal [groups|parts|rows] of {a} {ts}.", "+{n} puts {a} {ts} into {b} {gs}, the same number into each.", "+{a} {ts} are for {b} [children|friends|cousins]. All get the same.",
  "~{n} splits {a} {ts} evenly between {b} people.", "~{a} {ts} are handed out to {b} children in equal parts."]
EACH = ["How many {ts} does each one get?", "How many {ts} does each get?", "How many {ts} are there for each?", "What is the number of {ts} for each one?",
  "+How many {ts} [does each one get|does each get|are there for each|go to each]?", "+How many {ts} for each?", "+What does each one get?", "+So how many {ts} [does each get|are that for each]?",
  "~How many {ts} will one of them have?"]
PACK = ["{n} puts {a} {ts} into {gs} of {b}.", "{n} has {a} {ts}. A {g} holds {b} {ts}.", "{n} packs {a} {ts}, {b} in each {g}.", "Each {g} has room for {b} {ts}. {n} has {a} {ts}.",
  "+{n} [puts|packs|sets] {a} {ts} into {gs}, {b} [in each|into each one|at a time].", "+[A|One|Every|Each] {g} [holds|takes|has room for|can hold] {b} {ts}. {n} [has|packs|wants to pack] {a} {ts}.", "+{n} has {a} {ts} and fills {gs} with {b} each.", "+{a} {ts} go into {gs} of {b}.", "+{n} makes {gs} of {b} {ts} from {a} {ts}.",
  "~{a} {ts} are sorted into {gs}, {b} {ts} to each.", "~{b} {ts} fit into one {g}, and {n} has {a}."]
HOLD = ["How many {gs} does {n} need?", "How many {gs} are filled?", "How many {gs} are there?", "How many {gs} does {n} fill?",
  "+How many {gs} [does {n} need|are that|does {n} fill|are needed|will be full|are used]?", "+So how many {gs} are there?", "+[Count|Tell|Say] how many {gs} [are needed|there are|{n} fills].",
  "~What is the number of {gs}?"]
MONEY = ["{n} has ${a}.", "{n} had ${a}.", "{n} goes to the {place} with ${a}.", "{n} saved ${a}.", "{n} starts the day with ${a}.", "There are ${a} in {n}'s wallet.",
  "+{n} [has|had|owns|saved|got|found|keeps|received] ${a}.", "+[Today|This morning|At first|On Monday] {n} [has|had] ${a}.", "+[In the bag of {n}|In {n}'s pocket|In a {g}] there are ${a}.", "+{n} comes to the [shop|market|store] with ${a}.", "+{n} and {m} go to the {place}. {n} has ${a}.",
  "~{n} takes ${a} to the {place}.", "~{n} earned ${a} last week."]
SPEND = ["{n} spends ${b} on a {t}.", "{n} buys a {t} for ${b}.", "A {t} for {m} costs ${b}.", "{n} pays ${b} for a {t}.", "{n} gives ${b} to {m}.",
  "+[Then |Later |After that |]{n} [buys|gets|orders|picks] a [new |red |small |]{t} for ${b}.", "+{n} [spends|uses|needs|loses] ${b}[ at the market| on food| for a bus| for lunch|].", "+{n} [gives|sends|returns] ${b} to [{m}|a friend|a cousin].", "+A {t} costs ${b}, and {n} buys it.", "+{m} [takes|borrows|gets] ${b} from {n}.",
  "~{n} hands over ${b} for a {t}.", "~${b} goes to {m}."]
EARN = ["{m} gives {n} ${b}.", "{n} earns another ${b}.", "{n} finds ${b}.", "{n} gets ${b} from {m}.", "{n} sells a {t} for ${b}.",
  "+[Then |Later |After that |]{n} [gets|finds|earns|wins|receives|saves] [another |]${b}[ more|].", "+{m} [sends|brings|gives] {n} ${b}[ more|].", "+{n}'s [mother|father|uncle|aunt|brother] [gives|sends] {n} ${b}.", "+{n} sells [a|an old|one] {t} and gets ${b}.", "+${b} come from [{m}|a friend|an uncle].",
  "~{n} is paid ${b} for some work.", "~{m} pays back ${b}."]
REST = ["How much money does {n} have left?", "How much is left?", "How many dollars does {n} have left?", "How much money does {n} still have?", "How many dollars does {n} have now?",
  "+How [much|many dollars] [is left|are left|remain|does {n} keep]?", "+How much [money |]does {n} have [after that|then|at the end|left over]?", "+So how [much money|many dollars] does {n} still have?", "+[Tell|Say|Count] how many dollars {n} has left.",
  "~What is left of the money?", "~How many dollars remain?"]
RICH = ["How much money does {n} have now?", "How many dollars does {n} have now?", "How many dollars does {n} have in all?", "How much money is that in total?",
  "+How [much money|many dollars] does {n} have [then|after that|altogether|at the end|today]?", "+So how [much money|many dollars] does {n} have?", "+How many dollars [are there|is that] [in all|altogether|in total]?", "+[Tell|Say|Count] how many dollars {n} has.",
  "~What does {n} have then?"]
NEED = ["{n} needs {a} {ts} and has {b}.", "{n} wants to have {a} {ts}. {n} already has {b}.", "{n} must collect {a} {ts} and has collected {b} so far.", "{n} has {b} {ts} but needs {a}.",
  "+{n} [needs|wants|has to get|would like to have] {a} {ts}[, but| and] has [only |]{b}.", "+{n} [needs|wants|must have] {a} {ts}. [There are|{n} has|{n} found] {b} [already|so far|of them].", "+{n} has {b} {ts} [and wants to have|but wants|and should have] {a}.", "+A {g} holds {a} {ts}, and there are {b} in it.",
  "~{n}'s goal is {a} {ts}; {b} are there.", "~Of {a} {ts} that {n} needs, {b} are ready."]
LACK = ["How many more {ts} does {n} need?", "How many {ts} are missing?", "How many more {ts} are needed?",
  "+How many {ts} [are missing|does {n} lack|are still needed|does {n} still need|more are needed]?", "+How many more [does {n} need|must come|are missing|does {n} have to get]?", "+So how many [more {ts}|{ts}] are missing?",
  "~How many {ts} must {n} still get?"]
AGE = ["{n} is {a} years old.", "{n} is {a}.", "Today {n} turns {a}.",
  "+{n} is {a} [years old|] [now|today|this year].", "+{n}'s age is {a}[ years|].", "+This year {n} [turns|becomes|is] {a}.", "+[Now|Today] {n} is {a} years old.",
  "~{n} has just become {a} years old."]
OLDER = ["How old will {n} be in {b} years?", "How old is {n} {b} years from now?", "In {b} years, how old is {n}?",
  "+How old [will {n} be|is {n}] [in|after] {b} [more |]years?", "+[After|In] {b} years, how old will {n} be?", "+What will be the age of {n} in {b} years?", "+{b} years go by. How old is {n} then?",
  "~What is {n}'s age {b} years later?"]
YOUNGER = ["How old was {n} {b} years ago?", "What was {n}'s age {b} years ago?",
  "+How old was {n} {b} years [before|earlier|before that]?", "+What age did {n} have {b} years ago?", "+{b} years ago, what was the age of {n}?", "+Go back {b} years. How old was {n}?",
  "~{b} years before, how old was {n}?"]
ELDER = ["{m} is {b} years older than {n}.", "{n} is {b} years younger than {m}.", "{m} was born {b} years before {n}.",
  "+{m} is older than {n} by {b} years.", "+{n} is younger than {m} by {b} years.", "+{m} has {b} more years than {n}.", "+{n} was born {b} years after {m}.", "+{m} was {b} when {n} was born.",
  "~{m}'s age is {b} more."]
JUNIOR = ["{m} is {b} years younger than {n}.", "{n} is {b} years older than {m}.", "{m} was born {b} years after {n}.",
  "+{m} is younger than {n} by {b} years.", "+{n} is older than {m} by {b} years.", "+{m} has {b} years less than {n}.", "+{n} was born {b} years before {m}.", "+{n} was {b} when {m} was born.",
  "~{m}'s age is {b} less."]
HOW_OLD = ["How old is {m}?", "What is {m}'s age?", "How many years old is {m}?",
  "+So how old is {m}?", "+How old is {m} [now|today|then]?", "+What is the age of {m}?", "+How many years does {m} have?",
  "~Tell the age of {m}."]
ASK = ["What is {x} {word} {y}?", "{x} {op} {y} = ?", "Calculate {x} {op} {y}.", "How much is {x} {word} {y}?", "Work out {x} {op} {y}.",
  "+[Find|Compute|Say|Tell|Count] {x} {word} {y}.", "+What [do you get for|comes out for|does one get from] {x} {op} {y}?", "+{x} {word} {y} = ?", "+[And|So|Now] what is {x} {op} {y}?", "+How much [do|does] {x} {word} {y} make?",
  "~Give the result of {x} {op} {y}.", "~{x} {word} {y} is how much?"]
WORDS = {"+": ["plus"], "-": ["minus"], "*": ["times"], "/": ["divided by"]}

HAS = ["{n} now has {c} {ts}.", "Then {n} has {c} {ts}.", "That makes {c} {ts}."]
ARE_LEFT = ["There are {c} {ts} left.", "{n} has {c} {ts} left.", "{c} {ts} are left."]
IN_ALL = ["In total there are {c} {ts}.", "Altogether that is {c} {ts}.", "There are {c} {ts} in all."]
HAS_TOO = ["{m} has {c} {ts}.", "So {m} has {c} {ts}."]
PAYS = ["The {ts} cost ${c}.", "{n} pays ${c}."]
MONEY_LEFT = ["{n} has ${c} left.", "There are ${c} left."]
MONEY_NOW = ["{n} has ${c} now.", "That makes ${c}."]
EACH_GETS = ["Each gets {c} {ts}.", "That is {c} {ts} for each."]
HOLDERS_ARE = ["That is {c} {gs}.", "{n} needs {c} {gs}."]
YEARS = ["{n} is {c} years old then.", "That is {c} years."]
YEARS_TOO = ["{m} is {c} years old.", "So {m} is {c}."]
