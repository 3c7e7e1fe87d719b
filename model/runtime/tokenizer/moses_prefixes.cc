#include "model/runtime/tokenizer/moses_prefixes.h"

namespace linnet::model {
namespace {

constexpr absl::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr absl::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr absl::string_view kFrenchLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZbcdefghijklmnopqrstuvwxyz";

constexpr MosesPrefixes kEnglishPrefixes = {
    .always =
        // Titles and ranks.
    "Adj Adm Adv Asst Bart Brig Capt Cmdr Col Comdr Con Cpl DR Dr Drs Ens Gen Gov Hon Hr Insp "
    "Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Ord Pfc Ph Prof Pvt Rep Reps Res Rev "
    "Rt Sen Sens Sfc Sgt Sr St Supt Surg "
    // Others.
    "Bldg Bros Corp Hosp Op Rs e.g i.e rev v vs Nos Nr "
    "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec",
    .before_number = "No Art pp",
    .single_letters = kCapitals,
};

constexpr MosesPrefixes kGermanPrefixes = {
    .always =
        // Titles and ranks.
    "Adj Adm Adv Asst Bart Brig Capt Cmdr Col Comdr Con Cpl DR Dr Ens Gen Gov Hon Insp Lt MM "
    "MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen "
    "Sens Sfc Sgt Sr St Supt Surg "
    // Others.
    "Bldg Bros Corp Hosp Op "
    "Art BSE Buchst Ca Chr Co D.h Dkr I.F Ltd Mio Mrd MwSt No Nos Nr SA Std Zt b.A bzgl bzw ca "
    "c.-à-d d.J d.h dergl dgl etc evtl ff g.U g.g.A ggf i.H.v jun k.o m.E o.ä pp s.p.a sen sog "
    "sogen spp u.E u.U u.a u.s.w u.ä usf usw v vgl vs z.B z.T z.Zt zzt "
    // Roman numerals of more than one letter.
    "II III IV VI VII VIII IX XI XII XIII XIV XV XVI XVII XVIII XIX XX "
    "ii iii iv vi vii viii ix xi xii xiii xiv xv xvi xvii xviii xix xx",
    .single_letters = kLetters,
    .largest_number = 99,
};

constexpr MosesPrefixes kFrench = {
    .always =
        "A.C.N A.M B.P C.N C.N.S C.P.I C.Q.F.D C.S E.V L.D LL.AA LL.AA.II LL.AA.RR LL.AA.SS LL.EE "
        "LL.MM LL.MM.II.RR MM N.B N.D N.D.A N.D.L.R N.D.T N.P.A.I N.S NN.SS P.S R.-V R.A.S R.I.P "
        "R.P S.A S.A.I S.A.R S.A.S S.E S.M S.M.I.R S.S SS T.S.V.P X.O Z.I "
        "al ann apr art auj av boul c.-à-d ca cf ch.-l chap contr dir e.g env etc ex fasc fig fr "
        "fém hab i.e ibid id inf lib loc.cit masc ms n/réf p.c.c p.ex p.j pl pp sec sect sing sq "
        "sqq suiv sup suppl tél vb vol vs éd",
    .single_letters = kFrenchLetters,
};

constexpr MosesPrefixes kChinese = {
    .always = "Ā Č Ē Ģ Ī Ķ Ļ Ņ Š Ū Ž",
    .before_number = "No Nr",
    .single_letters = kCapitals,
};

}  // namespace

const MosesPrefixes& FindMosesPrefixes(absl::string_view language) {
  if (language == "de") return kGermanPrefixes;
  if (language == "fr") return kFrench;
  if (language == "zh") return kChinese;
  return kEnglishPrefixes;
}

}  // namespace linnet::model
